// Package clock is the seam between the library and the two clocks of a
// machine, so that tests can hold timers back (a paused process) or make the
// wall clock jump (a suspended machine) without either happening for real.
package clock

import "time"

// A Clock reads the clocks of the machine and runs functions later.
type Clock interface {
	// Now reads both clocks at one moment.
	Now() Instant
	// AfterFunc runs f on a goroutine of its own when d has passed on the
	// monotonic clock, as [time.AfterFunc] does.
	AfterFunc(d time.Duration, f func()) Timer
}

// A Timer is a pending AfterFunc.
type Timer interface {
	// Stop keeps the function from running; it reports whether it was in time.
	Stop() bool
}

// An Instant is one moment, read on the monotonic clock, which stands still
// while a machine is suspended, and on the wall clock, which does not but may
// be set by hand.
type Instant struct {
	Mono time.Time // compared by its monotonic reading
	Wall time.Time // has no monotonic reading
}

// Add returns the moment d later on both clocks.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{Mono: i.Mono.Add(d), Wall: i.Wall.Add(d)}
}

// IsZero reports whether i was never set.
func (i Instant) IsZero() bool { return i.Mono.IsZero() }

// Real is the machine's own clock.
type Real struct{}

// Now implements [Clock].
func (Real) Now() Instant {
	now := time.Now()
	return Instant{Mono: now, Wall: now.Round(0)}
}

// AfterFunc implements [Clock].
func (Real) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
