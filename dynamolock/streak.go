package dynamolock

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A streak is a series of failures of the writes by which a client's contenders try to take
// one key. As long as it lasts, and more than one of them wants the key, they write one at a
// time, each after a longer pause. Otherwise many contenders would keep busy a partition that
// is throttled, each at its own pace, and the heartbeats of a holder with it.
//
// streaks.mu guards it.
type streak struct {
	delays   *backoff.Loop
	until    driver.Instant // no write before this
	failures int
	err      error           // of the last write that failed
	wake     <-chan struct{} // ends the pause
	users    int             // contenders that have had such an error, and whose calls go on
	writing  chan struct{}   // closed when the write under way has come to an end; nil if none is
}

// streaks are those that a client is in, by key.
type streaks struct {
	delays backoff.Policy

	mu strict.Mutex[strict.Streaks]
	of map[string]*streak
}

func newStreaks(e *engine) *streaks {
	return &streaks{delays: e.times.streaks, of: make(map[string]*streak)}
}

// awaitWrite waits until a contender may write, and reports whether it has waited and the others may
// write too. If a write that it waited for failed, or if ctx ends, it returns the error of the streak:
// another write would meet the same.
func (c *contender) awaitWrite(ctx context.Context) (over bool, err error) {
	for {
		now := c.host.Now()
		c.streaks.mu.Lock()
		s := c.streaks.of[c.req.Key]
		if s == nil || s.users == 0 || s.users == 1 && c.streak == s {
			c.streaks.mu.Unlock()
			return over, nil
		}
		writing, until, failures, wake, err := s.writing, s.until, s.failures, s.wake, notSent(s.err)
		pause := until.Sub(now)
		if writing == nil && pause <= 0 {
			s.writing = make(chan struct{})
			c.writesIn = s
			c.streaks.mu.Unlock()
			return false, nil
		}
		c.streaks.mu.Unlock()
		if writing == nil {
			if !backoff.Sleep(ctx, pause, wake) {
				return false, err
			}
		} else {
			select {
			case <-writing:
			case <-ctx.Done():
				return false, err
			}
		}
		c.streaks.mu.Lock()
		switch current := c.streaks.of[c.req.Key] == s; {
		case current && s.failures > failures:
			err = notSent(s.err)
			c.joinLocked(s)
			c.streaks.mu.Unlock()
			return false, err
		case current && writing == nil && s.until == until: // if it was woken, the outage is over
			s.until = c.host.Now()
		}
		c.streaks.mu.Unlock()
		over = true // if there is none the next time
	}
}

// endWrite notes what came of a write: nil if the table has decided.
func (c *contender) endWrite(err error) {
	now, wake := c.host.Now(), c.wake(err)
	c.streaks.mu.Lock()
	defer c.streaks.mu.Unlock()
	s := c.streaks.of[c.req.Key]
	switch {
	case errors.Is(err, context.Canceled): // by a caller
	case !transient(err), conflicting(err), readFailed(err):
		if s != nil {
			delete(c.streaks.of, c.req.Key)
			s.letWriteLocked()
		}
	case s == nil && c.over:
	default:
		if s == nil {
			s = &streak{delays: c.streaks.delays.Start()}
			c.streaks.of[c.req.Key] = s
		}
		c.joinLocked(s)
		s.err, s.wake = err, wake
		s.failures++
		if now.Sub(s.until) >= 0 { // else it was sent before the pause
			delay, _ := s.delays.Next()
			s.until = now.Add(delay)
		}
	}
	c.passWriteLocked()
}

// passWrite is for one that has nothing to write.
func (c *contender) passWrite() {
	c.streaks.mu.Lock()
	defer c.streaks.mu.Unlock()
	c.passWriteLocked()
}

func (c *contender) passWriteLocked() {
	if c.writesIn != nil {
		c.writesIn.letWriteLocked()
		c.writesIn = nil
	}
}

// notSent is the error of another contender's write, for one that has sent nothing.
func notSent(err error) error {
	var failed *callError
	if !errors.As(err, &failed) {
		return err
	}
	other := *failed
	other.unsent = true
	return &other
}

// letWriteLocked lets another write.
func (s *streak) letWriteLocked() {
	if s.writing != nil {
		close(s.writing)
		s.writing = nil
	}
}

// joinLocked makes the contender one of those whose write has failed.
func (c *contender) joinLocked(s *streak) {
	if c.streak != s && !c.over {
		c.leaveLocked()
		c.streak = s
		s.users++
	}
}

// endStreak is for the end of the call. A write may still be under way.
func (c *contender) endStreak() {
	c.streaks.mu.Lock()
	defer c.streaks.mu.Unlock()
	c.over = true
	c.leaveLocked()
}

// leaveLocked is the opposite of joinLocked. The last one leaves nothing behind.
func (c *contender) leaveLocked() {
	s := c.streak
	if s == nil {
		return
	}
	c.streak = nil
	if s.users--; s.users == 0 && c.streaks.of[c.req.Key] == s {
		delete(c.streaks.of, c.req.Key)
	}
}
