package recordlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// holder is the contender as a holder, with a new beat.
func (c *contender) holder() Holder {
	c.beats++
	now := c.host.Now().Wall
	h := Holder{
		Grant: c.grant, Beat: beat(c.beats), Lease: c.opts.Lease, Owner: c.req.Owner, Data: c.req.Data, Since: now, Touched: now,
	}
	if c.opts.NeverExpires {
		h.Lease = Forever
	}
	return h
}

// write takes the key. A vacant record or none is taken by Take, so that no read is needed before.
func (c *contender) write(ctx context.Context, p plan) (*hold, error) {
	if !c.seen.known || c.seen.rec.Vacant() {
		return c.send(ctx, c.holder(), func(ctx context.Context, h Holder) (Record, bool, error) {
			return c.store.Take(ctx, c.req.Key, h, c.req.Mode)
		})
	}
	named, next := c.seen.rec, p.next
	next.Token++
	next.Mode, next.Intent = c.req.Mode, Intent{}
	own := c.holder()
	own.Token = next.Token
	return c.send(ctx, own, func(ctx context.Context, h Holder) (Record, bool, error) {
		next.Holders = append(slices.Clone(p.next.Holders), h)
		return c.store.Swap(ctx, c.req.Key, named, next)
	})
}

// confirm renews a grant that an earlier write of this call has got. If its lease was over, observers may have been told so.
func (c *contender) confirm(ctx context.Context, own *Holder) (*hold, error) {
	got := attempt{sent: c.began}
	c.owed = true
	c.open = slices.DeleteFunc(c.open, func(a attempt) bool {
		if a.beat == own.Beat {
			got = a
		}
		return a.beat == own.Beat
	})
	lease := driver.NewLease(c.host, c.lease(), driver.ErrLeaseExpired)
	if lease.Renew(got.sent); !lease.Live() {
		return nil, errOver
	}
	next := c.holder()
	next.Token, next.Since = own.Token, own.Since
	h, err := c.send(ctx, next, func(ctx context.Context, h Holder) (Record, bool, error) {
		return c.store.Renew(ctx, c.req.Key, h, c.req.Mode)
	})
	switch {
	case h != nil && !lease.Live():
		c.owed = true
		return nil, errOver
	case h == nil && err == nil && c.req.Reclaim && slices.ContainsFunc(c.seen.rec.Holders, func(other Holder) bool {
		return other.Owner == c.req.Owner && other.Token > own.Token
	}):
		return nil, driver.ErrReclaimed // by another client, from which this call must not reclaim the key
	}
	return h, err
}

// lease is the length of the leases of this client.
func (e *Engine) lease() time.Duration {
	if e.opts.NeverExpires {
		return Forever / 4
	}
	return e.opts.Lease
}

// send sends a write with a holder. When ctx ends it returns at once: a goroutine waits for the answer, and removes what was written.
func (c *contender) send(ctx context.Context, h Holder, write func(context.Context, Holder) (Record, bool, error)) (*hold, error) {
	var sent driver.Instant
	var now Record
	var done bool
	answers := make(chan error) // without room: either the call gets the answer, or the goroutine sees the end of ctx
	err := c.paced(ctx, c.req.Key, writes, func() error {
		if err := c.slot(ctx); err != nil {
			return err
		}
		sent = c.host.Now()
		h.Touched = sent.Wall
		if !c.tasks.Go(func(background context.Context) {
			err := c.timed(background, c.req.Key, c.opts.Timeout, func(ctx context.Context) (err error) {
				now, done, err = write(ctx, h)
				return err
			})
			<-c.slots
			select {
			case answers <- err:
			case <-ctx.Done():
				if classIs(err, Unknown) {
					c.open = append(c.open, attempt{h.Beat, sent})
				}
				c.settle(c.req.Key, c.grant, c.open, done || now.Holder(c.grant) != nil || c.owed || !c.intended.IsZero())
			}
		}) {
			<-c.slots
			return driver.ErrClosed
		}
		select {
		case err := <-answers:
			return err
		case <-ctx.Done():
			c.left = true
			return ctx.Err()
		}
	})
	switch {
	case classIs(err, Unknown):
		c.doubt, c.doubted = true, true
		c.open = append(c.open, attempt{h.Beat, sent})
		if most := 64; len(c.open) > most { // a call may wait for days; the debt is looked at for long enough
			c.open = slices.Delete(c.open, 0, 1)
		}
		return nil, err
	case err != nil:
		return nil, err
	case done && now.Holder(c.grant) == nil:
		c.owed = true
		return nil, errNoGrant
	}
	named := c.seen.rec.Version
	c.seen, c.looked = c.saw(c.req.Key, now), true
	if !done {
		return nil, c.refused(named, now.Version)
	}
	return newHold(c, now, sent), nil
}

// errNoGrant ends a call when the answer to its write makes no sense.
var errNoGrant = fmt.Errorf("%w: the answer to a write does not have the grant that was written", ErrCorrupt)

// refused ends the call when writes in a row are refused by the record that they named.
func (c *contender) refused(named, now any) error {
	if now != named {
		c.baffled = 0
		return nil
	}
	most := maxRefused
	if now == nil { // not every store sends along what was in the way, and it may be gone when it is read
		most *= 16
	}
	if c.baffled++; c.baffled < most {
		return nil
	}
	if c.doubted { // an earlier write took the key, the grant was broken, and the store refuses to give it again
		return errOver
	}
	return errRefused
}
