package holdfast

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// After a suspend, timers have all the time left that they had before: they run on the
// monotonic clock, which stood still. So a client that holds locks compares its two clocks
// once per clockLook. Once the wall clock has gone ahead by aheadBy or more, it has its locks
// look at them each time, until it holds none: their timers are late by that much. When it was set
// back they look once, so that their leases know of that before a suspend.
const (
	clockLook = time.Second
	aheadBy   = 10 * time.Millisecond
)

// clocks compares the two clocks of a client.
type clocks struct {
	first driver.Instant

	// Guarded by Client.mu.
	ahead  time.Duration // of the wall clock, when last known
	jumped bool          // it has gone ahead since there are locks
	timer  driver.Timer  // nil if none runs
}

// jumpedLocked reports whether the wall clock has gone ahead since there are locks, or was set back just now.
func (c *Client) jumpedLocked() bool {
	now := c.clock.Now()
	ahead := now.Wall.Sub(c.clocks.first.Wall) - now.Mono.Sub(c.clocks.first.Mono)
	by := ahead - c.clocks.ahead
	if by < 0 || by >= aheadBy { // smaller steps add up
		c.clocks.ahead = ahead
	}
	c.clocks.jumped = (c.clocks.jumped || by >= aheadBy) && len(c.held) > 0
	return c.clocks.jumped || by <= -aheadBy
}

// watchClocksLocked sees to it that the clocks are compared while there are locks. Its timer
// is not stopped with the last of them, which costs less where locks are short.
func (c *Client) watchClocksLocked() {
	if c.clocks.timer == nil && len(c.held) > 0 {
		c.clocks.timer = c.clock.AfterFunc(clockLook, c.compareClocks)
	}
}

// stopClocks is for a client that is closed.
func (c *Client) stopClocks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clocks.timer != nil {
		c.clocks.timer.Stop()
	}
}

// compareClocks ends the locks that a suspend has outlasted.
func (c *Client) compareClocks() {
	c.mu.Lock()
	var held []*Lock
	if c.jumpedLocked() {
		held = slices.Concat(slices.Collect(maps.Values(c.held))...)
	}
	c.clocks.timer = nil
	c.watchClocksLocked()
	c.mu.Unlock()
	for _, k := range held {
		k.check()
	}
}
