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

// close drops what is unread but for what is in the channel, and closes it.
func (q *queue) close() {
	q.mu.Lock()
	close(q.quit)
	q.mu.Unlock()
	q.idle.Wait()
	close(q.out)
}
