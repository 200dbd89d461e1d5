package dynamolock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// step is what a waiter does next.
type step int

const (
	noStep     step = iota
	listenStep      // wait in line, until it is called
	pollStep        // wait until the key may be free or the next poll is due, and poll
	lookStep        // a consistent read
	writeStep       // the write that takes the key
	yieldStep       // let others take the key first, and look what has become of it
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
	w := &waiter{grant: c.grant}
	if c.req.Reclaim {
		w.owner = c.req.Owner
	}
	c.lines.join(c.req.Key, w)
	defer c.lines.leave(c.req.Key, w)
	blind := c.lines.leads(c.req.Key, w) // it leads, and has seen nothing yet
	owed := c.firstStep(blind)
	for {
		// Read once for all cases: a contender that leads only now has seen nothing yet.
		leads, seen := c.lines.leads(c.req.Key, w), c.lines.observed(c.req.Key)
		if seen.item != nil && (c.owns(seen.item) || c.brokenIn(seen.item)) { // by a write without an answer, which was late: another one makes sure
			owed = writeStep
		}
		next, err := c.nextStep(ctx, owed, leads, blind, &seen)
		if err != nil {
			return nil, err
		}
		c.behind = next == pollStep || next == listenStep
		var met observation
		switch next {
		case lookStep:
			met, err = c.look(ctx)
			blind, owed = false, noStep
			if err != nil {
				owed = lookStep
			}
		case writeStep:
			var got outcome
			if got, err = c.take(ctx, &seen); got.hold != nil {
				c.insists = false // the write has removed what there was
				return got.hold, nil
			}
			met = got.met
			// What was refused has taken nothing: it suffices that the first in line writes. But one that reclaims
			// has to see first what there is.
			again := maybeDone(err) || owed == writeStep && (err != nil || c.reclaimable(met.item) && c.ripe(&met))
			blind, owed = blind && err != nil, noStep
			if again {
				owed = writeStep
			}
		case yieldStep:
			c.lines.rest(c.req.Key, w, true) // those behind it whose time is shorter may take their chance
			err = c.pauseFor(ctx, c.turns.left(c.req.Key))
			c.lines.rest(c.req.Key, w, false)
			if err != nil {
				return nil, err
			}
			owed = lookStep
		case pollStep:
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
		if i := met.item; i != nil && i.held() && i.limit() != c.req.Mode.Limit {
			c.req.Behind(driver.Mode{Shared: i.sharing != nil, Limit: i.limit()})
		}
		if err == nil {
			if _, err = c.evictFormer(ctx, &met); err != nil {
				owed = writeStep // which shows what there is
			}
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

// firstStep is what the call owes itself before anything else: none if that depends on whether it leads.
func (c *contender) firstStep(leads bool) step {
	remembered := c.lines.observed(c.req.Key)
	switch {
	case c.req.Reclaim:
		return writeStep
	case leads && c.probablyHeld(&remembered): // what is remembered may be over
		return lookStep
	}
	return noStep
}

// nextStep returns what a waiter does next, by what was seen: what it owes, or what its place in the line is for. It returns an error
// if the call has come to its end.
func (c *contender) nextStep(ctx context.Context, owed step, leads, blind bool, seen *observation) (step, error) {
	switch {
	case owed != noStep:
		return owed, nil
	case leads && (blind || c.ripe(seen)) && c.yields(ctx):
		return yieldStep, nil
	case leads && (blind || c.ripe(seen)):
		return writeStep, nil
	case c.req.Reclaim && !c.req.Mode.Shared && c.grants.holding(c.req.Key, c.req.Owner):
		// this client's own lock, which stands
		return noStep, driver.Held(driver.Info{Key: c.req.Key, Held: true, Holder: driver.Holder{Owner: c.req.Owner}})
	case leads:
		return pollStep, nil
	}
	return listenStep, nil
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
	case i != nil && (i.held() || c.behind):
		return c.inTheWay(i)
	}
	return errNoAnswer
}

// inTheWay is the error over whoever has a key, or is about to have one that is free: a writer that keeps readers out, or somebody
// before it in the line of its client.
func (c *contender) inTheWay(i *item) error {
	info := i.info(c.req.Key)
	info.Held = true
	return driver.Held(info)
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
	if err == nil && !c.lines.polled(c.req.Key, i) {
		if i, err = c.get(ctx, c.key, true); err == nil {
			c.lines.record(c.req.Key, i)
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return c.waitedFor()
	}
	return err
}
