package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Extend sets the TTL to d from now; 0 removes it. It sends nothing. It fails
// with what Err returns if the lock has ended: nothing brings it back.
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

// passedBefore reports which of two moments that are over was over first: each counts on the clock that saw that sooner.
func (k *Lock) passedBefore(one, other driver.Instant) bool {
	now := k.client.clock.Now()
	return now.Since(one) > now.Since(other)
}

// trimTTL sees to it that a suspend is noticed that comes after the wall clock was set back, as a Lease does: what is left by it
// is never more than what is left by the other, but for what may lie between the readings of the two.
func (k *Lock) trimTTL() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.client.clock.Now()
	if more := k.ttl.Wall.Sub(now.Wall) - k.ttl.Mono.Sub(now.Mono); more >= clockSkew && !k.ttl.IsZero() {
		k.ttl.Wall = k.ttl.Wall.Add(-more)
	}
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
