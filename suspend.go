package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// After a suspend, timers have all the time left that they had before: they run on the
// monotonic clock, which stood still. So a client that holds locks compares its two clocks
// once per clockLook, and has its locks look at them whenever the wall clock has gone ahead
// by aheadBy or more.
const (
	clockLook = time.Second
	aheadBy   = 10 * time.Millisecond
)

// clocks compares the two clocks of a client.
type clocks struct {
	first driver.Instant
	ahead time.Duration // of the wall clock, when last known; guarded by Client.mu
	armed bool          // a timer runs; guarded by Client.mu
}

// jumpedLocked reports whether the wall clock has gone ahead since the last time.
func (c *Client) jumpedLocked() bool {
	now := c.clock.Now()
	ahead := now.Wall.Sub(c.clocks.first.Wall) - now.Mono.Sub(c.clocks.first.Mono)
	by := ahead - c.clocks.ahead
	if by < 0 || by >= aheadBy { // smaller steps add up
		c.clocks.ahead = ahead
	}
	return by >= aheadBy
}

// watchClocksLocked sees to it that the clocks are compared while there are locks. Its timer
// is not stopped with the last of them, which costs less where locks are short.
func (c *Client) watchClocksLocked() {
	if !c.clocks.armed && len(c.held) > 0 {
		c.clocks.armed = true
		c.clock.AfterFunc(clockLook, c.compareClocks)
	}
}

// compareClocks ends the locks that a suspend has outlasted.
func (c *Client) compareClocks() {
	c.mu.Lock()
	var held []*Lock
	if c.jumpedLocked() {
		for k := range c.held {
			held = append(held, k)
		}
	}
	c.clocks.armed = false
	c.watchClocksLocked()
	c.mu.Unlock()
	for _, k := range held {
		k.check()
	}
}
