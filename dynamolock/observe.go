package dynamolock

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// An observation is what a client has seen of a key's item, and since when it
// has been the same. Whoever holds a lease changes the guid at each heartbeat; an
// item that has not changed for its whole lease is that of a holder who is gone.
//
// The time is the observer's own, on its monotonic clock, and begins *after* the
// read that showed the item first. The holder counts from before the write. So
// whatever the two clocks show, the holder's lease is over first.
type observation struct {
	item  *item // nil: nothing was seen yet
	since driver.Instant
}

// see takes note of an item that was read before now.
func (o *observation) see(i *item, now driver.Instant) {
	if o.item != nil && o.item.same(i) {
		return
	}
	o.item, o.since = i, now
}

// takeable reports whether the key may be had, as far as was seen.
func (b *engine) takeable(o *observation) bool {
	switch {
	case o.item == nil:
		return false
	case !o.item.held():
		return true
	}
	left, ends := b.left(o)
	return ends && left <= 0
}

// left returns how long the item has to stay as it is until it may be taken, or
// false if it never may.
func (b *engine) left(o *observation) (time.Duration, bool) {
	if o.item.form != leased {
		return 0, false
	}
	now := b.host.Now()
	left := o.item.lease - now.Sub(o.since)
	if b.opts.TrustLocalTime && !o.item.touched.IsZero() {
		ends := o.item.touched.Add(o.item.lease + b.host.Margin(o.item.lease))
		left = min(left, ends.Sub(now.Wall))
	}
	return left, true
}
