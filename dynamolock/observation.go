package dynamolock

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// An observation is what a client has seen of a key's item, and since when the item has
// been the same. A live holder changes the guid at each heartbeat; an item that has not
// changed for its whole lease belongs to a holder that is gone.
//
// The observer counts on its own monotonic clock, from *after* the read that showed the
// item first. The holder counts from before the write. So the holder's lease ends first,
// whatever the two clocks show.
type observation struct {
	item  *item // nil: nothing was seen yet
	since driver.Instant

	entries     map[string]driver.Instant // since when each entry of a shared item has been the same
	intentSince driver.Instant
}

// update notes an item that was read before now.
func (o *observation) update(i *item, now driver.Instant) {
	if o.item != nil && i.justBroken(o.item) {
		return // the read is older than what was seen
	}
	if o.item == nil || !o.item.same(i) && !o.item.justBroken(i) {
		o.since = now
	}
	if o.item == nil || o.item.intent != i.intent {
		o.intentSince = now
	}
	var entries map[string]driver.Instant
	if i.sharing != nil {
		entries = make(map[string]driver.Instant, len(i.sharing.holders))
		for _, h := range i.sharing.holders {
			since := now
			if before, known := o.entries[h.grant]; known && o.item != nil && h.unchanged(o.item.holder(h.grant)) {
				since = before
			}
			entries[h.grant] = since
		}
	}
	o.entries = entries
	o.item = i // even if it is the same: what is remembered may be without its data
}

// takeable reports whether the key may be taken, by what was seen.
func (e *engine) takeable(o *observation) bool {
	switch {
	case o.item == nil:
		return false
	case !o.item.held():
		return true
	}
	left, ends := e.left(o)
	return ends && left <= 0
}

// deserted reports whether an item is a grant of this client that no lock and no call has any
// more. Nobody will have it again.
func (e *engine) deserted(i *item) bool {
	guid := i.ofGrant()
	return i.held() && i.sharing == nil && len(guid) == guidLen && guid[:clientLen] == e.id && !e.grants.alive(guid[:grantLen])
}

// left returns how long the item has to stay unchanged before the key may be taken, or
// false if that never suffices.
func (e *engine) left(o *observation) (time.Duration, bool) { return e.leftAt(o, e.host.Now()) }

// leftFor is left, for this contender: one that shares the key also waits for who keeps others out.
func (c *contender) leftFor(o *observation) (time.Duration, bool) {
	left, ends := c.left(o)
	if ends && c.req.Mode.Shared && o.item.intent != "" {
		left = max(left, c.intentLeft(o, c.host.Now()))
	}
	return left, ends
}

// leftAt is left, as it was at a moment.
func (e *engine) leftAt(o *observation, now driver.Instant) (time.Duration, bool) {
	switch {
	case e.deserted(o.item):
		return 0, true
	case o.item.form != leased:
		return 0, false
	}
	if o.item.sharing != nil { // until the last of them is over
		var left time.Duration
		for k := range o.item.sharing.holders {
			left = max(left, e.holderLeft(o, &o.item.sharing.holders[k], now))
		}
		return left, true
	}
	left := o.item.lease - now.Sub(o.since)
	if e.opts.TrustLocalTime && !o.item.touched.IsZero() {
		ends := o.item.touched.Add(o.item.lease + e.host.Margin(o.item.lease))
		left = min(left, ends.Sub(now.Wall))
	}
	return left, true
}
