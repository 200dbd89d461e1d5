package holdfast

import "sync"

// queue is an unbounded channel of events. A goroutine exists only while there
// is more unread than the one event that fits into the channel itself.
type queue struct {
	out chan Event

	mu      sync.Mutex
	waiting []Event
	pumping bool
	quit    chan struct{} // closed by close
	idle    sync.WaitGroup
}

func newQueue() *queue {
	return &queue{out: make(chan Event, 1), quit: make(chan struct{})}
}

// push never blocks. It is not called after close.
func (q *queue) push(event Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.pumping {
		select {
		case <-q.quit:
			return
		case q.out <- event:
			return
		default:
		}
		q.pumping = true
		q.idle.Go(q.pump)
	}
	q.waiting = append(q.waiting, event)
}

func (q *queue) pump() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.pumping = false
			q.waiting = nil
			q.mu.Unlock()
			return
		}
		event := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		select {
		case q.out <- event:
		case <-q.quit:
			return
		}
	}
}

// close drops what is unread.
func (q *queue) close() {
	q.mu.Lock()
	close(q.quit)
	q.mu.Unlock()
	q.idle.Wait()
	select {
	case <-q.out:
	default:
	}
}

// runner calls functions one after the other. A goroutine exists only while
// there is one to be called. The zero value is ready to use.
type runner struct {
	mu      sync.Mutex
	waiting []func()
	running bool
	idle    sync.WaitGroup
}

// run never blocks.
func (r *runner) run(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, f)
	if !r.running {
		r.running = true
		r.idle.Go(r.drain)
	}
}

func (r *runner) drain() {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.running = false
			r.waiting = nil
			r.mu.Unlock()
			return
		}
		f := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
		f()
	}
}

// wait returns when all have been called; run is not called any more.
func (r *runner) wait() { r.idle.Wait() }
