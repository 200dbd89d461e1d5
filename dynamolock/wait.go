package dynamolock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// wait takes the key as soon as it is available. The first contender of the client begins
// like a try, and then polls; others wait in line behind it. One that reclaims writes at
// once in any case.
func (c *contender) wait(ctx context.Context) (*hold, error) {
	if c.req.Yield {
		if err := c.pauseFor(ctx, gapOf(c.opts.Poll)); err != nil {
			return nil, err
		}
	}
	w := c.lines.join(c.req.Key, c.grant)
	defer c.lines.leave(c.req.Key, w)
	defer c.withdraw()
	first, write := c.lines.leads(c.req.Key, w), c.req.Reclaim
	remembered := c.lines.observed(c.req.Key)
	read := !write && (first && c.probablyHeld(&remembered) || c.mismatch(&remembered) != nil)
	for {
		// Read once for both cases: a contender that leads only now has seen nothing yet.
		leads, seen := c.lines.leads(c.req.Key, w), c.lines.observed(c.req.Key)
		if seen.item != nil && c.owns(seen.item) { // by a write without an answer, which was late: another one makes sure
			write, read = true, false
		}
		if leads && !read && !write && (first || c.ripe(&seen)) {
			gave, err := c.letOthersFirst(ctx)
			if err != nil {
				return nil, err
			}
			read = gave
		}
		var err error
		var met observation
		switch {
		case read || leads && !first && !write && c.mismatch(&seen) != nil: // an old replica may have shown that
			met, err = c.look(ctx)
			read, first = err != nil, false
		case write || leads && (first || c.ripe(&seen)):
			var got outcome
			if got, err = c.take(ctx, &seen); got.hold != nil {
				c.insists = false // the write has removed what there was
				return got.hold, nil
			}
			met = got.met
			// What was refused has taken nothing: it suffices that the first in line writes. But who reclaims
			// has to see first what there is.
			write, first = maybeDone(err) || write && (err != nil || c.reclaimable(met.item) && c.ripe(&met)), first && err != nil
		case c.req.Reclaim && !c.req.Mode.Shared && c.grants.holding(c.req.Key, c.req.Owner):
			// this client's own lock, which stands
			return nil, driver.Held(driver.Info{Key: c.req.Key, Held: true, Owner: c.req.Owner})
		case leads:
			if err = c.insist(ctx, &seen); err == nil {
				c.askTurn(ctx, &seen)
				err = c.poll(ctx)
			}
		default:
			select {
			case <-w.up:
			case <-ctx.Done():
				return nil, c.waitedFor()
			}
		}
		if err == nil {
			err = c.mismatch(&met)
		}
		if err == nil {
			continue
		}
		c.lines.rest(c.req.Key, w, true) // others go on meanwhile
		err = c.again(ctx, err)
		c.lines.rest(c.req.Key, w, false)
		if err != nil {
			return nil, err
		}
	}
}

// ripe reports whether a write might get the key, by what was seen.
func (c *contender) ripe(seen *observation) bool {
	return seen.item == nil || c.enterable(seen) || !c.req.Mode.Shared && c.reclaimable(seen.item)
}

// reclaimable reports whether an item is a grant that the request may end.
func (c *contender) reclaimable(i *item) bool {
	return c.req.Reclaim && i.held() && i.sharing == nil && i.owner == c.req.Owner && !i.belongs(c.id) &&
		(i.form == tokenless) == (c.opts.Mode == FailClosed)
}

// waitedFor is the error of a contender that gave up: what it was waiting for.
func (c *contender) waitedFor() error {
	switch i, err := c.lines.heard(c.req.Key, c.began); {
	case err != nil:
		return err
	case i != nil && i.held():
		return driver.Held(i.info(c.req.Key))
	}
	return errNoAnswer
}

// poll waits until the key may be taken as it was seen, or until the next read is due,
// and reads it in that case. The read is eventually consistent: the write that follows
// from it is conditional on what was read.
func (c *contender) poll(ctx context.Context) error {
	delay, seen := c.lines.untilPoll(c.req.Key)
	if left, ends := c.leftFor(&seen); ends {
		delay = min(delay, left)
	}
	if !backoff.Sleep(ctx, max(delay, 0), nil) {
		return c.waitedFor()
	}
	if !c.lines.pollNow(c.req.Key) {
		return nil
	}
	i, err := c.get(ctx, c.key, false)
	switch {
	case err == nil:
		c.lines.record(c.req.Key, i)
		return nil
	case ctx.Err() != nil:
		return c.waitedFor()
	}
	return err
}
