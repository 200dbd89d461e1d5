package dynamolock

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Who waits for a shared key alone keeps others from joining by an intent in the item, which
// it renews as a holder renews its lease, so that an intent whose writer is dead is over
// after a lease. It is not a claim: whoever looks first gets the key.
//
//	grant (32)  touch (16)  lease in ms

// intend is the write of an intent, on the condition that there is none, but what was seen
// and is over.
func (c *contender) intend(seen *observation) *expression {
	x := &expression{}
	c.intents++
	free := "attribute_not_exists(" + x.name(attrIntent) + ") OR begins_with(" + x.name(attrIntent) + ", " + x.value(binary(c.grant)) + ")"
	if i := seen.item; i.intent != "" && c.intentOver(seen) {
		free += " OR " + x.is(attrIntent, binary(i.intent))
	}
	x.cond = all(x.shared(), "("+free+")")
	x.set(attrIntent, binary(c.grant+ordered(c.intents)+strconv.FormatInt(c.opts.Lease.Milliseconds(), 10)))
	return x
}

// intentOver reports whether an intent has not been renewed for its lease.
func (e *engine) intentOver(o *observation) bool {
	return e.intentLeft(o, e.host.Now()) <= 0
}

func (e *engine) intentLeft(o *observation, now driver.Instant) time.Duration {
	lease := e.opts.Lease // of what cannot be read
	if i := o.item.intent; len(i) > grantLen+numberLen {
		if ms, err := strconv.ParseInt(i[grantLen+numberLen:], 10, 64); err == nil && ms > 0 && ms < closedLease {
			lease = time.Duration(ms) * time.Millisecond
		}
	}
	left := lease - now.Sub(o.intentSince)
	if o.item.form == released && !o.item.touched.IsZero() {
		// A writer that lives takes a free key at its next look. No lock depends on the clocks that are compared here.
		left = min(left, o.item.touched.Add(lease).Sub(now.Wall))
	}
	return left
}

// insist keeps others from joining a shared key, if nobody does yet and the request wants it
// alone.
func (c *contender) insist(ctx context.Context, seen *observation) error {
	i := seen.item
	if c.req.Mode.Shared || i == nil || !i.held() || i.sharing == nil {
		return nil
	}
	now := c.host.Now()
	mine := strings.HasPrefix(i.intent, c.grant)
	arrived := mine && (!c.unsure || strings.HasPrefix(i.intent, c.grant+ordered(c.intents)))
	switch {
	case arrived && now.Sub(c.insisted) < c.opts.Heartbeat:
		return nil
	case i.intent != "" && !mine && !c.intentOver(seen):
		return nil
	}
	_, old, err := c.update(ctx, c.key, c.intend(seen))
	c.unsure = maybeDone(err) || c.unsure && err != nil
	switch {
	case err == nil && old == nil:
		c.insisted, c.insists = now, true
	case err == nil:
		c.lines.record(c.req.Key, old)
	case maybeDone(err):
		c.insisted, c.insists = now, true
		c.unanswered.add(c.host.Now()) // it may arrive when the call is over
	}
	if transient(err) {
		return nil // the next poll is soon enough: an intent is no claim
	}
	return err
}

// withdraw removes the intent of a call that is over.
func (e *engine) withdraw(ctx context.Context, key attributes, i *item) (done bool, err error) {
	if len(i.intent) < grantLen || i.intent[:clientLen] != e.id || e.grants.alive(i.intent[:grantLen]) {
		return false, nil
	}
	x := &expression{}
	x.cond = "begins_with(" + x.name(attrIntent) + ", " + x.value(binary(i.intent[:grantLen])) + ")"
	x.remove(attrIntent)
	_, old, err := e.update(ctx, key, x)
	return err == nil && old == nil, err
}
