package driver

import "time"

// A Clock reads the two clocks of a machine and runs functions later. Tests replace it, to hold timers back (a stopped process) or to
// make the wall clock jump (a machine that was asleep) without either happening for real.
type Clock interface {
	// Now reads both clocks at one moment.
	Now() Instant
	// AfterFunc runs f on a goroutine of its own when d has passed on the monotonic clock, as [time.AfterFunc] does.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is a pending AfterFunc.
type Timer interface {
	// Stop keeps the function from running; it reports whether it was in time.
	Stop() bool
}

// An Instant is one moment, read on the monotonic clock, which stands still while a machine is suspended, and on the wall clock,
// which does not but may be set by hand.
type Instant struct {
	Mono time.Time // compared by its monotonic reading
	Wall time.Time // has no monotonic reading
}

// Add returns the moment d later on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: i.Mono.Add(d), Wall: i.Wall.Add(d)}
}

// Sub returns the time from u to i on the monotonic clock.
func (i Instant) Sub(u Instant) time.Duration { return i.Mono.Sub(u.Mono) }

// Since returns how long ago u is at i, by the clock on which that is longer: a period is over if it is over by either clock. It is
// negative while u is to come on both.
func (i Instant) Since(u Instant) time.Duration {
	return max(i.Sub(u), i.Wall.Sub(u.Wall))
}

// IsZero reports whether i was never set.
func (i Instant) IsZero() bool { return i.Mono.IsZero() }
