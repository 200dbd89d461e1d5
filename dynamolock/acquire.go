package dynamolock

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Acquire implements driver.Driver.
func (e *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	key, err := e.opts.Keys.encode(req.Key)
	if err != nil {
		return driver.Grant{}, err
	}
	e.lookAtTTL()
	c := &contender{engine: e, req: req, key: key, grant: newGrant(e.id), cleared: e.foreignTTL()}
	e.enter(c.grant)
	acquire := c.try
	if req.Wait {
		acquire = c.wait
	}
	h, err := acquire(ctx)
	if err != nil {
		e.forget(c.grant)
		if !c.lookedAfter {
			e.leftovers.add(req.Key, key, c.unanswered, false)
		}
		return driver.Grant{}, err
	}
	h.start()
	return driver.Grant{Token: h.token, Lease: h.lease, Hold: h}, nil
}

// A contender is one call of Acquire.
type contender struct {
	*engine
	req   *driver.Request
	key   attributes
	grant string // the beginning of its guids

	touches uint64 // how many guids it has had
	cleared string // the attribute of the table's Time to Live, as its first write knew it

	unanswered  unanswered
	lookedAfter bool // the last request was left to a goroutine, and all of unanswered with it
}

// try takes the key if nobody has it. It remembers what it sees of the holder, so that
// a later try can find out that the holder is gone.
func (c *contender) try(ctx context.Context) (*hold, error) {
	for {
		got, err := c.take(ctx)
		switch {
		case err != nil:
			if err := c.again(ctx, err); err != nil {
				return nil, err
			}
		case got.hold != nil:
			return got.hold, nil
		case !c.takeable(&got.met):
			return nil, &driver.HeldError{Holder: got.met.item.info(c.req.Key)}
		}
		// Otherwise it has become free, or its lease has ended, since the last write.
	}
}

// wait takes the key as soon as it is available. The first contender of the client
// writes at once, since the key may be free, and then polls; others wait in line behind
// it. One that reclaims writes at once in any case.
func (c *contender) wait(ctx context.Context) (*hold, error) {
	w := c.join(c.req.Key)
	defer c.leave(c.req.Key, w)
	write := c.leads(c.req.Key, w) || c.req.Reclaim
	for {
		// Read once for both cases: a contender that leads only now has seen nothing yet.
		leads := c.leads(c.req.Key, w)
		var err error
		switch {
		case write || leads && c.ripe():
			var got outcome
			if got, err = c.take(ctx); got.hold != nil {
				return got.hold, nil
			}
			write = err != nil
		case c.req.Reclaim && c.holding(c.req.Key, c.req.Owner):
			return nil, c.waitedFor(c.req.Key) // this client's own lock, which stands
		case leads:
			err = c.poll(ctx, c.req.Key, c.key)
		default:
			select {
			case <-w.up:
			case <-ctx.Done():
				return nil, c.waitedFor(c.req.Key)
			}
		}
		if err == nil {
			continue
		}
		c.rest(c.req.Key, w, true) // others go on meanwhile
		err = c.again(ctx, err)
		c.rest(c.req.Key, w, false)
		if err != nil {
			return nil, err
		}
	}
}

// ripe reports whether a write might get the key, by what was seen.
func (c *contender) ripe() bool {
	seen := c.observed(c.req.Key)
	return seen.item == nil || c.takeable(&seen) || c.reclaimable(seen.item)
}

// reclaimable reports whether an item is a grant that the request may end.
func (c *contender) reclaimable(i *item) bool {
	return c.req.Reclaim && i.held() && i.owner == c.req.Owner && !i.belongs(c.id) &&
		(i.form == tokenless) == (c.opts.Mode == FailClosed)
}

// again waits before another try, if the failure was transient and the user's
// Retry allows one.
func (c *contender) again(ctx context.Context, err error) error {
	if ctx.Err() != nil || !transient(err) {
		return err
	}
	c.failed(c.req.Key, err)
	return c.req.Retry(ctx, err, c.wake(err))
}

// An outcome is what came of a write that was answered: a hold, or else what was in
// the way.
type outcome struct {
	hold *hold // nil if the key could not be taken
	met  observation
}

// An answer is what the table said to a write.
type answer struct {
	updated attributes // it was carried out
	old     *item      // it was not: this was in the way
	err     error
}

// take sends the request that takes the key if it is free, or reclaimable, or has not
// changed since it was found to be abandoned. When ctx ends, take returns at once. A
// request that was sent is then completed in the background, and what it has taken is
// given back.
func (c *contender) take(ctx context.Context) (outcome, error) {
	if !c.leftovers.admit(ctx, c.req.Key) {
		return outcome{}, c.waitedFor(c.req.Key)
	}
	sent, left := c.host.Now(), c.abandoned()
	x := c.expression(sent, left)
	sending := newSending()
	answered := make(chan answer) // unbuffered: the answer is the caller's or nobody's
	gone := make(chan struct{})   // closed when the caller has returned
	detached, cancel := c.detach(ctx)
	if !c.tasks.Go(func(context.Context) {
		defer cancel()
		var r answer
		r.updated, r.old, r.err = c.update(sending.trace(detached), c.key, x)
		select {
		case answered <- r:
		case <-gone:
			c.seeThrough(sent, sending, r)
		}
	}) {
		cancel()
		return outcome{}, holdfast.ErrClosed
	}
	select {
	case r := <-answered:
		return c.judge(sent, left, r)
	case <-ctx.Done():
		c.lookedAfter = true
		c.leftovers.gaveUp(c.req.Key, c.key)
		if sending.never() {
			cancel()
		}
		close(gone)
		return outcome{}, c.waitedFor(c.req.Key)
	}
}

// abandoned returns the item that was seen, if the key may be taken while the item stays
// as it is; else nil.
func (c *contender) abandoned() *item {
	if seen := c.observed(c.req.Key); c.takeable(&seen) {
		return seen.item
	}
	return nil
}

// judge says what an answer means; left is the abandoned item that the write was to
// replace, or nil.
func (c *contender) judge(sent driver.Instant, left *item, r answer) (outcome, error) {
	switch {
	case maybeDone(r.err):
		c.unanswered.add(sent, c.host.Now())
		return outcome{}, r.err
	case r.err != nil:
		return outcome{}, r.err
	case r.old == nil:
		own, err := decode(c.opts.Table, r.updated)
		if err == nil && !(own.held() && own.belongs(c.grant)) {
			err = &ItemError{Table: c.opts.Table, Attribute: attrGUID, Reason: "is not the one that was written"}
		}
		if err != nil {
			c.unanswered.add(sent, c.host.Now())
			return outcome{}, fmt.Errorf("the answer to UpdateItem: %w", err)
		}
		return outcome{hold: c.granted(own, sent)}, nil
	case r.old.held() && r.old.belongs(c.grant):
		// An earlier request was carried out: one of ours, or one that a wrapper of the
		// SDK has repeated.
		if !c.unanswered.none() {
			sent = c.unanswered.first
			c.unanswered.requests--
		}
		return outcome{hold: c.granted(r.old, sent)}, nil
	}
	if c.opts.Mode == FailClosed && r.old.form != absent && r.old.form != tokenless {
		return outcome{}, &ItemError{
			Table: c.opts.Table, Attribute: attrLease, Reason: "is there: the key is used with another mode than FailClosed",
		}
	}
	if left != nil && left.form != absent && left.same(r.old) {
		// Another try would meet the same, for ever.
		return outcome{}, &ItemError{
			Table: c.opts.Table, Attribute: attrGUID, Reason: "is that of a key that is free, and the key cannot be taken",
		}
	}
	return outcome{met: c.see(c.req.Key, r.old)}, nil
}

// granted makes a hold of the item that this contender wrote; sent is a moment before
// the write.
func (c *contender) granted(own *item, sent driver.Instant) *hold {
	c.took(c.req.Key, own)
	h := &hold{
		engine:     c.engine,
		name:       c.req.Key,
		key:        c.key,
		grant:      c.grant,
		token:      own.token,
		owner:      c.req.Owner,
		lease:      c.host.NewLease(c.times.hold, holdfast.ErrLeaseExpired),
		lose:       c.req.Lost,
		unanswered: c.unanswered,
		begun:      sent,
		touches:    c.touches,
		cleared:    c.cleared,
	}
	h.lease.Renew(sent)
	return h
}

// seeThrough finishes with a write whose caller has returned.
func (c *contender) seeThrough(sent driver.Instant, sending *sending, r answer) {
	owed := false
	switch taken := r.err == nil && (r.old == nil || r.old.held() && r.old.belongs(c.grant)); {
	case taken:
		_, err := c.giveBack(c.tasks.Context(), c.key, func(x *expression) string { return x.begins(c.grant) })
		owed = err != nil
	case sending.never():
		sending.outlive(c.tasks.Context(), c.opts.Timeout, c.opts.RetryDelay)
	case maybeDone(r.err):
		c.unanswered.add(sent, c.host.Now())
	}
	c.leftovers.seenThrough(c.req.Key, c.key, c.unanswered, owed)
}
