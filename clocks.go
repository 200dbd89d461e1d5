package holdfast

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Extend sets the TTL to d from now; 0 removes it. It sends nothing. It fails with what Err returns if the lock has ended: nothing
// brings it back.
func (k *Lock) Extend(d time.Duration) error {
	if d < 0 {
		return failed("extend", k.key, driver.Invalid("TTL", "%v is negative", d))
	}
	for {
		err := k.Err()
		if err != nil {
			return failed("extend", k.key, err)
		}
		k.mu.Lock()
		if k.err == nil && !k.over(k.ttl) {
			k.setTTLLocked(d)
			k.mu.Unlock()
			return nil
		}
		k.mu.Unlock() // it ended since Err looked: look again
	}
}

// over reports whether a TTL has passed on either clock.
func (k *Lock) over(ttl driver.Instant) bool {
	return !ttl.IsZero() && k.client.clock.Now().Since(ttl) >= 0
}

func (k *Lock) setTTLLocked(d time.Duration) {
	if k.ttlTimer != nil {
		k.ttlTimer.Stop()
		k.ttlTimer = nil
	}
	if d == 0 {
		k.ttl = driver.Instant{}
		return
	}
	k.ttl = k.client.clock.Now().Add(d)
	k.ttlTimer = k.client.clock.AfterFunc(d, k.check)
}

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
