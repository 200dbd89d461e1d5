package holdfast

import (
	"sync"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// A pump passes values on, one at a time and in order, and never blocks a pusher. A goroutine exists only while values wait.
type pump[T any] struct {
	offer func(T) bool // optional: passes a value on if it can do so at once
	give  func(T)

	mu      strict.Mutex[strict.Pump]
	waiting []T
	running bool
	closed  bool
	idle    sync.WaitGroup
}

// push never blocks. After close it drops the value.
func (p *pump[T]) push(v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
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
		if !over { // give has called runtime.Goexit, as t.FailNow does
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

// close returns when all values have been passed on.
func (p *pump[T]) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.idle.Wait()
}

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
		case <-q.quit: // first, or a reader might miss an event and receive the next
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

// close drops unread events.
func (q *queue) close() {
	close(q.quit)
	q.pump.close()
	select {
	case <-q.out:
	default:
	}
}
