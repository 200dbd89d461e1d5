package driver

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// A Lease is a promise of the engine: while it runs, no other client is given what was granted under it. It may cover one lock or all
// locks of a session. It ends on the client's own clocks, unless it is renewed:
//
//	valid until = moment of sending what renewed it + length - margin
//
// Then every lock under it is lost for good; a later renewal serves only later grants. A lease is checked on two clocks: the
// monotonic clock stands still while a machine is suspended, and the wall clock can be set.
//
// Renew, Limit, End and Live end locks, which takes mutexes of package holdfast: an engine calls them with no mutex locked.
type Lease struct {
	host  Host
	cause error // of the end when the lease runs out

	mu     strict.Mutex[strict.Lease]
	length time.Duration // margin taken off
	term   *term
	dead   error // set by End: no further term
	timer  Timer
}

// NewLease returns a lease of the given length that has not begun: nothing is valid under it before the first Renew. expired is the
// cause of the end when it runs out: [ErrSessionExpired] or [ErrLeaseExpired].
func NewLease(host Host, length time.Duration, expired error) *Lease {
	return &Lease{host: host, length: length - host.Margin(length), cause: expired, term: &term{}}
}

// A term is a time during which a lease was never interrupted. All fields are guarded by the mu of its lease.
type term struct {
	until Instant
	locks map[*Tenant]struct{}
	ended error // why no lock of this term is valid any more
}

// Renew extends the lease: sent is a moment *before* the request was sent that the engine is known to have taken as a renewal. It
// never shortens it.
func (l *Lease) Renew(sent Instant) {
	l.mu.Lock()
	if l.dead != nil {
		l.mu.Unlock()
		return
	}
	// The clock is asked first: an answer that comes after the end, or that a stopped process reads after the end, must not bring
	// locks back to life.
	over := l.expireLocked()
	until := sent.Add(l.length)
	if !until.Mono.Before(l.term.until.Mono) { // if equal, the newer wall clock counts
		l.term.until = until
	}
	l.mu.Unlock()
	endAll(over)
}

// Limit makes the lease shorter, as a server does that resumes a session with a shorter timeout: it ends at sent + length - margin at
// the latest, and each further renewal is for this length. It never makes the lease longer. An engine calls it as soon as it knows
// the new length, before anything that renews the lease.
func (l *Lease) Limit(sent Instant, length time.Duration) {
	length -= l.host.Margin(length)
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

// End ends the lease for good: every lock under it is lost, with this cause. An engine calls it when it learns that the lease is
// over, such as that of a session that has expired. When a client closes, all locks have ended before.
func (l *Lease) End(cause error) {
	l.mu.Lock()
	over := l.expireLocked() // what the clocks have seen came first
	l.dead = cmp.Or(l.dead, cause)
	over = append(over, l.closeTermLocked(cause)...)
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.mu.Unlock()
	endAll(over)
}

// Live reports whether a lock granted now would be valid. If it says no, no lock under the lease is valid any more.
func (l *Lease) Live() bool {
	l.mu.Lock()
	over := l.expireLocked() // a clock that is set back brings nothing back to life
	live := l.dead == nil && l.overLocked() == nil
	l.mu.Unlock()
	endAll(over)
	return live
}

// Deadline is when the lease ends unless it is renewed; it may be past.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term.until.Mono
}

// A Tenant is a lock under a lease, as package holdfast has it; an engine has no use for one. The zero Tenant is under none, and has
// only Deadline.
type Tenant struct {
	lease *Lease
	over  func()
	term  *term // guarded by lease.mu
}

// Attach puts a lock under the lease, or returns why it is not valid. over is called when the lock has to end, at least once, and may
// be called sooner: [Tenant.Ended] says whether, and why. It is called while nothing is locked.
func (l *Lease) Attach(t *Tenant, over func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead != nil {
		return l.dead
	}
	if cause := l.overLocked(); cause != nil {
		return cause
	}
	if l.term.locks == nil {
		l.term.locks = make(map[*Tenant]struct{})
	}
	*t = Tenant{lease: l, over: over, term: l.term}
	l.term.locks[t] = struct{}{}
	l.armLocked()
	return nil
}

// Detach takes the lock away from the lease: it has ended.
func (t *Tenant) Detach() {
	l := t.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(t.term.locks, t)
	// Where each lock has a lease of its own, the timer would keep what is released for as long as that would have lasted. One that
	// fires by now looks after itself.
	if len(l.term.locks) == 0 && l.timer != nil && l.timer.Stop() {
		l.timer = nil
	}
}

// Ended returns why the lock is not valid any more under its lease; nil while it is.
func (t *Tenant) Ended() error {
	l := t.lease
	l.mu.Lock()
	var over []*Tenant
	if t.term == l.term {
		over = l.expireLocked()
	}
	cause := t.term.ended
	l.mu.Unlock()
	endAll(over)
	return cause
}

// Deadline is when the lock ends unless the lease is renewed, or when it ended; the zero Time if it was never valid.
func (t *Tenant) Deadline() time.Time {
	if t.lease == nil {
		return time.Time{}
	}
	t.lease.mu.Lock()
	defer t.lease.mu.Unlock()
	return t.term.until.Mono
}

// overLocked returns why the present term is over by the clocks: the reason of the lease, or ErrClockJump if only the wall clock says
// so.
//
// The rest of the lease by the wall clock is never longer than by the monotonic clock. Otherwise a suspend would go unnoticed after
// the wall clock was set back.
func (l *Lease) overLocked() error {
	now := l.host.Now()
	if more := l.term.until.Wall.Sub(now.Wall) - l.term.until.Mono.Sub(now.Mono); more > 0 {
		l.term.until.Wall = l.term.until.Wall.Add(-more)
	}
	until := l.term.until
	switch {
	case !now.Mono.Before(until.Mono):
		return l.cause
	case !now.Wall.Before(until.Wall):
		return ErrClockJump
	}
	return nil
}

// expireLocked closes the present term if it is over by the clocks.
func (l *Lease) expireLocked() []*Tenant {
	if len(l.term.locks) > 0 {
		if cause := l.overLocked(); cause != nil {
			return l.closeTermLocked(cause)
		}
	}
	return nil
}

// closeTermLocked ends the term, now or when it was over by itself, and returns the locks that were in it, to be ended by the caller
// once mu is free: a lock's own mutex comes before it.
func (l *Lease) closeTermLocked(cause error) []*Tenant {
	t := l.term
	t.ended = cause
	if now := l.host.Now(); now.Mono.Before(t.until.Mono) {
		t.until.Mono = now.Mono
		if now.Wall.Before(t.until.Wall) { // else that is when it was over
			t.until.Wall = now.Wall
		}
	}
	over := slices.Collect(maps.Keys(t.locks))
	t.locks = nil
	l.term = &term{until: t.until}
	return over
}

func endAll(over []*Tenant) {
	for _, t := range over {
		t.over()
	}
}

// armLocked sees to it that a timer runs while there are locks. It is not moved at each renewal: when it fires early it is set again.
func (l *Lease) armLocked() {
	if l.timer != nil || len(l.term.locks) == 0 {
		return
	}
	left := l.term.until.Mono.Sub(l.host.Now().Mono)
	l.timer = l.host.AfterFunc(left, func() {
		l.mu.Lock()
		l.timer = nil
		over := l.expireLocked()
		l.armLocked()
		l.mu.Unlock()
		endAll(over)
	})
}
