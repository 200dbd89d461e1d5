package holdfast

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A lease implements [driver.Lease]. It is checked on two clocks, since the monotonic
// one stands still while a machine is suspended and the wall clock can be set.
type lease struct {
	clock  driver.Clock
	margin func(length time.Duration) time.Duration
	cause  error // what running out is called

	mu     sync.Mutex
	length time.Duration // margin taken off
	term   *term
	dead   error // set by End: no further term
	timer  driver.Timer
}

// A term is a time during which a lease was never interrupted. All fields are
// guarded by the mu of its lease.
type term struct {
	until driver.Instant
	locks map[*Lock]struct{}
	ended error // why no lock of this term is valid any more
}

// Renew implements [driver.Lease].
func (l *lease) Renew(sent driver.Instant) {
	l.mu.Lock()
	if l.dead != nil {
		l.mu.Unlock()
		return
	}
	// The clock is asked first: an answer that comes after the end, or that a
	// stopped process reads after the end, must not bring locks back to life.
	over := l.expireLocked()
	until := sent.Add(l.length)
	if !until.Mono.Before(l.term.until.Mono) { // if equal, the newer wall clock counts
		l.term.until = until
	}
	l.mu.Unlock()
	endAll(over)
}

// Limit implements [driver.Lease].
func (l *lease) Limit(sent driver.Instant, length time.Duration) {
	length -= l.margin(length)
	l.mu.Lock()
	if l.dead != nil || length >= l.length {
		l.mu.Unlock()
		return
	}
	over := l.expireLocked() // by what it was: an end that has passed is not moved
	l.length = length
	until := sent.Add(length)
	if until.Mono.Before(l.term.until.Mono) {
		l.term.until.Mono = until.Mono
	}
	if until.Wall.Before(l.term.until.Wall) {
		l.term.until.Wall = until.Wall
	}
	over = append(over, l.expireLocked()...)
	if l.timer != nil && l.timer.Stop() {
		l.timer = nil
		l.armLocked()
	}
	l.mu.Unlock()
	endAll(over)
}

// End implements [driver.Lease].
func (l *lease) End(cause error) {
	l.mu.Lock()
	if l.dead == nil {
		l.dead = cause
	}
	over := l.closeTermLocked(cause)
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	endAll(over)
}

// Live implements [driver.Lease].
func (l *lease) Live() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead == nil && l.overLocked() == nil
}

// Deadline implements [driver.Lease].
func (l *lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term.until.Mono
}

// deadline is when a term ends, or ended.
func (l *lease) deadline(t *term) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.until.Mono
}

// attach puts a new lock under the lease, or returns why it is not valid.
func (l *lease) attach(k *Lock) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead != nil {
		return l.dead
	}
	if cause := l.overLocked(); cause != nil {
		return cause
	}
	if l.term.locks == nil {
		l.term.locks = make(map[*Lock]struct{})
	}
	l.term.locks[k] = struct{}{}
	k.term = l.term
	l.armLocked()
	return nil
}

func (l *lease) detach(k *Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(k.term.locks, k)
	// Where each lock has a lease of its own, the timer would keep what is
	// released for as long as that would have lasted. One that fires by now
	// looks after itself.
	if len(l.term.locks) == 0 && l.timer != nil && l.timer.Stop() {
		l.timer = nil
	}
}

// check returns the moment at which the locks of a term ceased to be valid, and
// why; nil while they are.
func (l *lease) check(t *term) (at driver.Instant, cause error) {
	l.mu.Lock()
	var over []*Lock
	if t == l.term {
		over = l.expireLocked()
	}
	at, cause = t.until, t.ended
	l.mu.Unlock()
	endAll(over)
	return at, cause
}

// overLocked returns why the present term is over by the clocks.
func (l *lease) overLocked() error { return passed(l.term.until, l.clock.Now(), l.cause) }

// passed reports whether now is at or after until on either clock: cause, or
// ErrClockJump if only the wall clock says so.
func passed(until, now driver.Instant, cause error) error {
	switch {
	case !now.Mono.Before(until.Mono):
		return cause
	case !now.Wall.Before(until.Wall):
		return ErrClockJump
	}
	return nil
}

// expireLocked closes the present term if it is over by the clocks.
func (l *lease) expireLocked() []*Lock {
	if len(l.term.locks) == 0 {
		return nil
	}
	cause := l.overLocked()
	if cause == nil {
		return nil
	}
	return l.closeTermLocked(cause)
}

// closeTermLocked ends the term and returns the locks that were in it, to be
// ended by the caller once mu is free: a Lock's own mutex comes before it.
func (l *lease) closeTermLocked(cause error) []*Lock {
	t := l.term
	t.ended = cause
	over := make([]*Lock, 0, len(t.locks))
	for k := range t.locks {
		over = append(over, k)
	}
	t.locks = nil
	l.term = &term{until: t.until}
	return over
}

func endAll(locks []*Lock) {
	for _, k := range locks {
		k.check()
	}
}

// armLocked sees to it that a timer runs while there are locks. It is not
// moved at each renewal: when it fires early it is set again.
func (l *lease) armLocked() {
	if l.timer != nil || len(l.term.locks) == 0 {
		return
	}
	left := l.term.until.Mono.Sub(l.clock.Now().Mono)
	l.timer = l.clock.AfterFunc(left, func() {
		l.mu.Lock()
		l.timer = nil
		over := l.expireLocked()
		l.armLocked()
		l.mu.Unlock()
		endAll(over)
	})
}
