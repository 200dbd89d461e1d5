package dynamolock

import (
	"container/list"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A limiter bounds how many requests of a kind are under way. Those that have not been answered for longer than answers take, or are about
// keys that fail, have a bound of their own: what a silent partition has to say holds up nothing that concerns another. In an outage
// nothing is answered, and there is one bound for all.
type limiter struct {
	*engine
	most, mostLate int
	mostSlow       int // of the prompt, if answers take long; 0: most

	mu           strict.Mutex[strict.Limiter]
	prompt, late int       // under way
	waiting      list.List // slots of those that wait for one, first come, first served
	behind       list.List // the same, about keys that fail
}

// A slot is that of one request.
type slot struct {
	limiter *limiter
	late    bool
	given   chan struct{} // closed when it has been given
	timer   driver.Timer  // nil if it is late
}

// take waits for a slot for a request about a key; false if ctx ends before.
func (l *limiter) take(ctx context.Context, name string) (*slot, bool) {
	s := &slot{limiter: l, late: l.health.failures(name) > 1, given: make(chan struct{})} // one may happen to any
	queue := &l.waiting
	if s.late {
		queue = &l.behind
	}
	l.mu.Lock()
	at := queue.PushBack(s)
	l.giveLocked()
	l.mu.Unlock()
	select {
	case <-s.given:
		return s, true
	case <-ctx.Done():
	}
	l.mu.Lock()
	given := isClosed(s.given)
	if !given {
		queue.Remove(at)
	}
	l.mu.Unlock()
	if given {
		s.leave()
	}
	return nil, false
}

// wait waits until a request about a key might have a slot.
func (l *limiter) wait(ctx context.Context, name string) bool {
	s, ok := l.take(ctx, name)
	if ok {
		s.leave()
	}
	return ok
}

// add takes a slot for a request that was sent at some time, whether one is free or not.
func (l *limiter) add(name string, sent driver.Instant) *slot {
	s := &slot{limiter: l, late: l.health.failures(name) > 1 || l.host.Now().Sub(sent) >= l.patience(), given: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginLocked(s)
	return s
}

// giveLocked gives what slots there are to those who wait.
func (l *limiter) giveLocked() {
	for l.waiting.Len() > 0 && !l.fullLocked(false) {
		l.beginLocked(l.waiting.Remove(l.waiting.Front()).(*slot))
	}
	for l.behind.Len() > 0 && !l.fullLocked(true) {
		l.beginLocked(l.behind.Remove(l.behind.Front()).(*slot))
	}
}

// fullLocked reports whether another request has to wait. Of the slots of the late, most are for those that become so: repetitions of what
// has failed must not keep these among the others.
func (l *limiter) fullLocked(late bool) bool {
	switch {
	case l.health.outage():
		return l.prompt+l.late >= l.most
	case late:
		return l.late >= l.mostLate/4
	}
	return l.prompt >= l.room()
}

// room is how many of the prompt there may be. If answers take longer than quickAnswer it is as many more, so that thousands of locks
// can be given back within a lease: the rate is the same.
func (l *limiter) room() int {
	longer := l.pulse.slowest() / quickAnswer
	return max(l.most, min(l.mostSlow, l.most*int(min(longer, 1000))))
}

func (l *limiter) beginLocked(s *slot) {
	close(s.given)
	if s.late {
		l.late++
		return
	}
	l.prompt++
	s.timer = l.host.AfterFunc(l.patience(), s.age)
}

// age is for a request that has not been answered for long. As long as none is free among those of the late, it keeps its own.
func (s *slot) age() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.timer == nil: // it has left
	case l.late >= l.mostLate || l.health.outage():
		s.timer = l.host.AfterFunc(l.patience(), s.age)
	default:
		s.late, s.timer = true, nil
		l.prompt--
		l.late++
		l.giveLocked()
	}
}

// leave is for the end of the request.
func (s *slot) leave() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.late {
		l.late--
	} else {
		s.timer.Stop()
		s.timer = nil
		l.prompt--
	}
	l.giveLocked()
}

// patience is how long an answer may take, by those of late.
func (l *limiter) patience() time.Duration { return l.pulse.usual(l.opts.Timeout) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
