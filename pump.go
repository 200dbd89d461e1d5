package holdfast

import (
	"sync"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// A pump hands values on, one at a time and in order, however slow the taker is.
// A goroutine exists only while something waits.
type pump[T any] struct {
	offer func(T) bool // optional: hands a value on at once, if it can; never blocks
	give  func(T)

	mu      strict.Mutex[strict.Pump]
	waiting []T
	running bool
	idle    sync.WaitGroup
}

// push never blocks.
func (p *pump[T]) push(v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		if p.offer != nil && p.offer(v) {
			return
		}
		p.running = true
		p.idle.Go(p.run)
	}
	p.waiting = append(p.waiting, v)
}

func (p *pump[T]) run() {
	over := false
	defer func() {
		if !over { // give has called runtime.Goexit, as a hook of a test may
			p.idle.Go(p.run)
		}
	}()
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.running = false
			p.waiting = nil
			p.mu.Unlock()
			over = true
			return
		}
		v := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
		p.give(v)
	}
}

// wait returns when all has been handed on; push is not called any more.
func (p *pump[T]) wait() { p.idle.Wait() }

// newRunner returns a pump that calls functions.
func newRunner() *pump[func()] { return &pump[func()]{give: func(f func()) { f() }} }

// queue is an unbounded channel of events.
type queue struct {
	pump[Event]

	out  chan Event
	quit chan struct{} // closed by close
}

func newQueue() *queue {
	q := &queue{out: make(chan Event, 1), quit: make(chan struct{})}
	q.offer = func(event Event) bool {
		select {
		case q.out <- event:
			return true
		default:
			return false
		}
	}
	q.give = func(event Event) {
		select {
		case <-q.quit: // first, or a reader might get one event and not the one before
			return
		default:
		}
		select {
		case q.out <- event:
		case <-q.quit:
		}
	}
	return q
}

// close drops what is unread. push is not called any more.
func (q *queue) close() {
	close(q.quit)
	q.wait()
	select {
	case <-q.out:
	default:
	}
}
