// Package zktest has what the tests of zklock and of its connection share: a clock that stands
// still, frames of ZooKeeper's protocol, and a server that knows little more than the creation of znodes.
package zktest

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A StillClock advances only when a test moves it, and fires no timers.
type StillClock struct {
	Time   driver.Instant
	Timers []time.Duration // that were set
}

// At is so many milliseconds after a moment, at which a new clock stands.
func At(ms int) driver.Instant {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return driver.Instant{Mono: begin, Wall: begin}.Add(time.Duration(ms) * time.Millisecond)
}

// NewStillClock returns a clock that stands at At(0).
func NewStillClock() *StillClock { return &StillClock{Time: At(0)} }

// Now implements [driver.Clock].
func (c *StillClock) Now() driver.Instant { return c.Time }

// Advance moves the clock.
func (c *StillClock) Advance(d time.Duration) { c.Time = c.Time.Add(d) }

// AfterFunc implements [driver.Clock].
func (c *StillClock) AfterFunc(d time.Duration, _ func()) driver.Timer {
	c.Timers = append(c.Timers, d)
	return StillTimer{}
}

// A StillTimer never fires.
type StillTimer struct{}

// Stop implements [driver.Timer].
func (StillTimer) Stop() bool { return true }

// Host returns the host of a client that has no engine.
func Host(t testing.TB, clock driver.Clock) (host driver.Host) {
	t.Helper()
	none := errors.New("the host is all that is wanted")
	_, err := holdfast.New(driver.Config{Clock: clock}, nil, func(h driver.Host) (driver.Driver, error) {
		host = h
		return nil, none
	})
	if !errors.Is(err, none) {
		t.Fatal(err)
	}
	return host
}
