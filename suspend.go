package holdfast

import (
	"maps"
	"slices"
	"time"
)

// clockLook is how often a client with locks compares its clocks. Timers run on the monotonic clock, which stands still while the
// machine is suspended: they fire late after a suspend. This look ends overdue locks within a second.
const clockLook = time.Second

// watchClocksLocked starts the timer of the next look if there are locks. The timer is not stopped with the last lock, which costs
// less where locks are short.
func (c *Client) watchClocksLocked() {
	if c.clockTimer == nil && len(c.held) > 0 {
		c.clockTimer = c.clock.AfterFunc(clockLook, c.compareClocks)
	}
}

// stopClocks is for a client that is closed.
func (c *Client) stopClocks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clockTimer != nil {
		c.clockTimer.Stop()
	}
}

// compareClocks ends the locks that a suspend has outlasted.
func (c *Client) compareClocks() {
	c.mu.Lock()
	held := slices.Concat(slices.Collect(maps.Values(c.held))...)
	c.clockTimer = nil
	c.watchClocksLocked()
	c.mu.Unlock()
	for _, k := range held {
		k.check()
	}
}
