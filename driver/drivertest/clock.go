// Package drivertest provides a clock for the tests of engines.
package drivertest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Clock runs on the process's time, virtual in a [testing/synctest] bubble, and can be paused, as a process is that is stopped, and
// set. The zero value is ready to use. An engine hands it to holdfast.New in its driver.Config.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
	paused bool
	held   []*timer // fired while paused, in the order of firing

	Set, Pending atomic.Int64 // timers: all that were set, and those that may still run
}

// Now implements [driver.Clock]. Time passes while the clock is paused, as it does for a stopped process.
func (c *Clock) Now() driver.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return driver.Instant{Mono: now, Wall: now.Round(0).Add(c.offset)}
}

// Jump sets the wall clock forward by d, or backward.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// Pause holds back the functions of all timers of this clock, as SIGSTOP does. Timers of other clocks go on.
func (c *Clock) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
}

// Resume runs what was held back, each function on its own goroutine.
func (c *Clock) Resume() {
	c.mu.Lock()
	c.paused = false
	held := c.held
	c.held = nil
	c.mu.Unlock()
	for _, t := range held {
		go t.run()
	}
}

// AfterFunc implements [driver.Clock].
func (c *Clock) AfterFunc(d time.Duration, f func()) driver.Timer {
	t := &timer{clock: c, f: f}
	c.Set.Add(1)
	c.Pending.Add(1)
	t.timer = time.AfterFunc(d, func() {
		c.mu.Lock()
		if c.paused {
			c.held = append(c.held, t)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		t.run()
	})
	return t
}

type timer struct {
	clock *Clock
	timer *time.Timer
	f     func()
	over  atomic.Bool // ran or was stopped
}

func (t *timer) run() {
	if t.finish() {
		t.f()
	}
}

func (t *timer) Stop() bool {
	t.timer.Stop()
	return t.finish()
}

func (t *timer) finish() bool {
	if !t.over.CompareAndSwap(false, true) {
		return false
	}
	t.clock.Pending.Add(-1)
	return true
}
