package zkfake

import (
	"sync"
	"time"
)

// A queue is one direction of a network connection: messages arrive in order, each after a delay, and none while the queue is held.
type queue struct {
	delay func() time.Duration

	mu     sync.Mutex
	change sync.Cond
	sent   []parcel
	first  time.Time // nothing that is sent from now on arrives before
	held   bool
	closed bool
}

// A parcel is something to do at the other end.
type parcel struct {
	due     time.Time
	deliver func()
}

// newQueue starts a queue. Close it.
func (e *Ensemble) newQueue(delay func() time.Duration) *queue {
	q := &queue{delay: delay}
	q.change.L = &q.mu
	e.running.Go(q.run)
	return q
}

func (q *queue) send(deliver func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := time.Now().Add(q.delay())
	if due.Before(q.first) {
		due = q.first
	}
	if n := len(q.sent); n > 0 && due.Before(q.sent[n-1].due) {
		due = q.sent[n-1].due
	}
	q.sent = append(q.sent, parcel{due, deliver})
	q.change.Broadcast()
}

// hold holds all messages in flight, or delivers them.
func (q *queue) hold(held bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = held
	q.change.Broadcast()
}

// silence has nothing that is sent from now on arrive for a time.
func (q *queue) silence(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first = time.Now().Add(d)
}

// clear loses all messages in flight.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent = nil
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}

func (q *queue) run() {
	for {
		q.mu.Lock()
		for !q.closed && (q.held || len(q.sent) == 0) {
			q.change.Wait()
		}
		if q.closed {
			q.mu.Unlock()
			return
		}
		next := q.sent[0]
		wait := time.Until(next.due)
		if wait <= 0 {
			q.sent = q.sent[1:]
		}
		q.mu.Unlock()
		if wait > 0 {
			time.Sleep(wait)
			continue // it may be held, or lost
		}
		next.deliver()
	}
}
