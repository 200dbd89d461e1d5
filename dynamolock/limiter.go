package dynamolock

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A limiter bounds how many requests of a kind are under way. Those that have not been answered for longer than answers take, or are about
// keys that fail, have a bound of their own: what a silent partition has to say holds up nothing that concerns another.
type limiter struct {
	*engine
	most, mostLate int

	mu           sync.Mutex
	prompt, late int           // under way
	freed        chan struct{} // closed when that changes; nil if nobody waits for it
}

// A slot is that of one request.
type slot struct {
	limiter *limiter
	late    bool
	timer   driver.Timer // nil if it is late
}

// fullLocked reports whether another request has to wait. Of the slots of the late, most are for those that become so: repetitions of what
// has failed must not keep these among the others.
func (l *limiter) fullLocked(late bool) bool {
	if late {
		return l.late >= l.mostLate/4
	}
	return l.prompt >= l.most
}

// wait waits until there is a slot for a request about a key; false if ctx ends before.
func (l *limiter) wait(ctx context.Context, name string) bool {
	_, ok := l.enter(ctx, name, func(bool) *slot { return nil })
	return ok
}

// take waits for a slot for a request about a key.
func (l *limiter) take(ctx context.Context, name string) (*slot, bool) {
	return l.enter(ctx, name, l.slotLocked)
}

func (l *limiter) enter(ctx context.Context, name string, take func(late bool) *slot) (*slot, bool) {
	for {
		late := l.health.fails(name)
		l.mu.Lock()
		switch {
		case ctx.Err() != nil:
			l.mu.Unlock()
			return nil, false
		case !l.fullLocked(late):
			s := take(late)
			l.mu.Unlock()
			return s, true
		}
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// add takes a slot for a request that was sent at some time, whether one is free or not.
func (l *limiter) add(name string, sent driver.Instant) *slot {
	late := l.health.fails(name) || l.host.Now().Sub(sent) >= l.patience()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slotLocked(late)
}

func (l *limiter) slotLocked(late bool) *slot {
	s := &slot{limiter: l, late: late}
	if late {
		l.late++
		return s
	}
	l.prompt++
	s.timer = l.host.AfterFunc(l.patience(), s.age)
	return s
}

// age is for a request that has not been answered for long. As long as none is free among those of the late, it keeps its own.
func (s *slot) age() {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.timer == nil: // it has left
	case l.late >= l.mostLate:
		s.timer = l.host.AfterFunc(l.patience(), s.age)
	default:
		s.late, s.timer = true, nil
		l.prompt--
		l.late++
		l.wakeLocked()
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
	l.wakeLocked()
}

func (l *limiter) wakeLocked() {
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// patience is how long an answer may take, by those of late.
func (l *limiter) patience() time.Duration { return l.pulse.usual(l.opts.Timeout) }
