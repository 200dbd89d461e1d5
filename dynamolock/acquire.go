package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// Acquire implements driver.Driver.
func (e *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	key, err := e.opts.Keys.encode(req.Key)
	if err != nil {
		return driver.Grant{}, err
	}
	e.lookAtTTL()
	for {
		c := &contender{engine: e, req: req, key: key, grant: newGrant(e.id), began: e.host.Now(), cleared: e.foreignTTL()}
		if h, err := c.getGrant(ctx); err == nil {
			return driver.Grant{Token: h.token, Lease: h.lease, Hold: h}, nil
		} else if !errors.Is(err, errGrantOver) {
			return driver.Grant{}, err
		}
	}
}

// getGrant is the call for one grant. In the end the hold looks after what was sent. Without a hold, also if the caller's Retry panics,
// it is given back.
func (c *contender) getGrant(ctx context.Context) (h *hold, err error) {
	c.grants.enter(c.grant)
	granted, kept := false, false
	defer func() {
		if !kept {
			c.grants.forget(c.grant, func() {
				c.leftovers.add(c.req.Key, c.key, c.unanswered.handOver(), granted || c.insists)
			})
			c.leftovers.start()
		}
	}()
	if h, err = c.acquire(ctx); err != nil {
		return nil, err
	}
	granted = true
	if err := c.reclaimRest(ctx); err != nil {
		return nil, err
	}
	if err := c.prove(ctx, h); err != nil {
		return nil, err
	}
	kept = true
	h.unanswered = c.unanswered.handOver()
	h.start()
	return h, nil
}

func (c *contender) acquire(ctx context.Context) (*hold, error) {
	defer c.endStreak()
	if c.req.Wait {
		return c.wait(ctx)
	}
	return c.try(ctx)
}

// errGrantOver is why a call begins again: it was granted the key, and somebody broke that grant
// before an answer said so, or its lease was over by then. No request of the same grant is carried out after that.
var errGrantOver = errors.New("over before it was known")

// maxBaffled is how many writes of a call may be refused though nothing has changed.
const maxBaffled = 3

// A contender is one call of Acquire.
type contender struct {
	*engine
	req   *driver.Request
	key   attributes
	grant string // the beginning of its guids
	began driver.Instant

	touches uint64 // how many guids it has had: the number of the last
	intents uint64 // how often it has written an intent
	cleared string // the attribute of the table's Time to Live, as its first write knew it

	unanswered unanswered
	inDoubt    []string         // their numbers, the last ones
	sends      []driver.Instant // of its last requests, before they were sent
	insisted   driver.Instant   // before the intent was written last
	askedTurn  driver.Instant   // before a turn was asked for last
	behind     bool             // it waits for others
	insists    bool             // the item may have an intent of this contender
	unsure     bool             // one of its intents had no answer, and none after it any effect
	baffled    int              // writes that were refused though nothing had changed
	joined     *item            // what it shares, as its write has left it

	streak   *streak // of failures, of which it has had one; nil if none
	writesIn *streak // in which it is the one to write; nil if it is not
	over     bool    // the call is; streaks.mu guards these three
}

// again waits before another try, if the failure was transient and the user's
// Retry allows one.
func (c *contender) again(ctx context.Context, err error) error {
	if ctx.Err() != nil || !transient(err) {
		return err
	}
	c.lines.failed(c.req.Key, err)
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

// take sends the request that takes the key if it is free, or reclaimable, or abandoned by
// what was seen and still the same. When ctx ends, take returns at once. A request that
// was sent is then completed in the background, and what it has taken is given back.
func (c *contender) take(ctx context.Context, seen *observation) (outcome, error) {
	switch over, err := c.awaitWrite(ctx); {
	case err != nil:
		return outcome{}, err
	case over: // many may have waited for that, and few reads tell them all
		if met, err := c.look(ctx); err != nil || !c.owns(met.item) {
			return outcome{met: met}, err
		}
	}
	if !c.leftovers.admit(ctx, c.req.Key) {
		c.passWrite()
		return outcome{}, c.waitedFor()
	}
	if seen.item != nil && seen.item.holder(c.grant) != nil {
		// It was read: a request to join that was sent now would say that it has seen its own token.
		c.passWrite()
		if c.brokenIn(seen.item) {
			return outcome{}, errGrantOver
		}
		return outcome{hold: c.met(seen.item)}, nil
	}
	sent := c.host.Now()
	x, by := c.chooseWrite(sent, seen)
	sending := newSending()
	answered := make(chan answer) // unbuffered: the answer is the caller's or nobody's
	gone := make(chan struct{})   // closed when the caller has returned
	var left *slot                // set by then, as the next is
	var before unanswered
	detached, cancel := c.detach(ctx)
	if !c.tasks.Go(func(context.Context) {
		defer cancel()
		var r answer
		r.updated, r.old, r.err = c.update(sending.trace(detached), c.key, x)
		c.endWrite(r.err)
		select {
		case answered <- r:
		case <-gone:
			c.seeThrough(before, sending, r)
			left.leave()
		}
	}) {
		cancel()
		c.passWrite()
		return outcome{}, driver.ErrClosed
	}
	select {
	case r := <-answered:
		return c.judge(sent, by, r)
	case <-ctx.Done():
		before = c.unanswered.handOver()
		left = c.leftovers.gaveUp(c.req.Key, c.key, c.grant, sent)
		unlessSent := func() {
			if sending.never() {
				cancel()
			}
		}
		// Where nothing expires, not at once: what is cancelled just as it gets its connection may have been sent, and nobody would know.
		// Elsewhere it takes one read to know, and what was sent after all would cost two writes, and keep others from the key meanwhile.
		if c.opts.Mode == FailOpen {
			unlessSent()
		} else {
			c.host.AfterFunc(c.opts.RetryDelay, unlessSent)
		}
		close(gone)
		return outcome{}, c.waitedFor()
	}
}

// chooseWrite returns the write that takes the key, by what was seen, and the item that it goes
// by: the one that it is to replace, abandoned or reclaimed, or the one that it is to join.
// Without one it is for a key that nobody has, or that somebody else waits for.
func (c *contender) chooseWrite(now driver.Instant, seen *observation) (*expression, *item) {
	var by *item
	hindered := c.req.Mode.Shared && !c.enterable(seen)
	if c.vacant(seen) && !hindered {
		by = seen.item
	}
	if by == nil && !hindered && seen.item != nil && c.reclaimable(seen.item) {
		by = seen.item
	}
	switch {
	case !c.req.Mode.Shared:
		return c.expression(now, by), by
	case by == nil && !hindered && c.joins(seen):
		return c.joining(now, seen), seen.item
	}
	return c.opening(now, seen, by), by
}

// judge says what an answer means; by is the item that the write went by, which it was to
// replace or to join, or nil.
func (c *contender) judge(sent driver.Instant, by *item, r answer) (outcome, error) {
	switch {
	case maybeDone(r.err), readFailed(r.err): // what refused it may be what a copy of it has taken
		c.doubt()
		return outcome{}, r.err
	case r.err != nil:
		return outcome{}, r.err
	case r.old == nil:
		own, err := decode(c.opts.Table, r.updated)
		if err == nil && !c.owns(own) {
			err = &ItemError{Table: c.opts.Table, Attribute: attrGUID, Reason: "is not the one that was written"}
		}
		if err != nil {
			c.doubt()
			return outcome{}, fmt.Errorf("the answer to UpdateItem: %w", err)
		}
		return outcome{hold: c.granted(own, sent)}, nil
	case c.brokenIn(r.old):
		return outcome{}, errGrantOver
	case c.owns(r.old):
		return outcome{hold: c.met(r.old)}, nil
	}
	if c.opts.Mode == FailClosed && r.old.form != absent && r.old.form != tokenless {
		return outcome{}, &ItemError{
			Table: c.opts.Table, Attribute: attrLease, Reason: "is there: the key is used with another mode than FailClosed",
		}
	}
	if by != nil && by.form != absent && by.same(r.old) {
		if r.old.belongs(c.grant) {
			return outcome{}, errGrantOver
		}
		// An intent may have come and gone before the item was read. Otherwise another try would meet the same, for ever.
		if c.baffled++; c.baffled == maxBaffled {
			return outcome{}, &ItemError{
				Table: c.opts.Table, Attribute: attrGUID, Reason: "is that of a key that may be taken, and the key cannot be taken",
			}
		}
	}
	return outcome{met: c.lines.record(c.req.Key, r.old)}, nil
}

// owns reports whether an item is held by this contender's grant.
func (c *contender) owns(i *item) bool {
	if c.req.Mode.Shared {
		return i.holder(c.grant) != nil
	}
	return i.held() && i.belongs(c.grant)
}

// brokenIn reports whether an item shows this contender's grant, which somebody has broken before the call knew of it.
func (c *contender) brokenIn(i *item) bool {
	if own := i.holder(c.grant); own != nil {
		return own.broken()
	}
	return i.held() && i.isBroken() && strings.HasPrefix(i.marked, c.grant)
}

// numbered gives another request its number.
func (c *contender) numbered(sent driver.Instant) {
	c.touches++
	c.sends = lastOf(append(c.sends, sent))
}

// doubt notes that the last request has had no answer.
func (c *contender) doubt() {
	c.unanswered.add(c.host.Now())
	c.inDoubt = lastOf(append(c.inDoubt, ordered(c.touches)))
}

// lastOf keeps what a call that waits for days remembers of its requests from growing.
func lastOf[T any](all []T) []T {
	const most = 64
	return slices.Delete(all, 0, max(0, len(all)-most))
}

// met makes a hold of an item that shows that a request was carried out. Its number says which: an earlier one of ours, or
// one that a wrapper of the SDK has repeated, while others may still arrive.
func (c *contender) met(own *item) *hold {
	var number string
	if entry := own.holder(c.grant); entry != nil {
		number = entry.touch
	} else {
		number = own.guid[grantLen:min(len(own.guid), grantLen+numberLen)] // somebody else may have cut it
	}
	if slices.Contains(c.inDoubt, number) {
		c.unanswered.requests--
	}
	return c.granted(own, c.sentAs(number))
}

// granted makes a hold of the item that this contender wrote; sent is a moment before
// the write.
func (c *contender) granted(own *item, sent driver.Instant) *hold {
	c.lines.took(c.req.Key, own)
	h := &hold{
		engine:  c.engine,
		name:    c.req.Key,
		key:     c.key,
		grant:   c.grant,
		token:   own.token,
		owner:   c.req.Owner,
		lease:   driver.NewLease(c.host, c.times.hold, driver.ErrLeaseExpired),
		lose:    c.req.Lost,
		asked:   c.req.Asked,
		begun:   sent,
		touches: c.touches,
		cleared: c.cleared,
	}
	if among := own.holder(c.grant); among != nil {
		entry := *among // others look at the item
		h.token, h.entry, h.others = entry.token, &entry, len(own.sharing.holders)-1
		c.joined = own
	}
	h.lease.Renew(sent)
	return h
}

// seeThrough finishes with a write whose caller has returned, and looks after those before it.
func (c *contender) seeThrough(u unanswered, sending *sending, r answer) {
	owed := false
	switch taken := r.err == nil && (r.old == nil || c.owns(r.old)); {
	case taken && c.req.Mode.Shared:
		i, err := r.old, error(nil)
		if i == nil {
			i, err = decode(c.opts.Table, r.updated)
		}
		if err == nil {
			_, err = c.giveBackShared(c.tasks.Context(), c.key, i, func(h *holder) bool { return h.grant == c.grant })
		}
		owed = err != nil
	case taken:
		old, err := c.giveBack(c.tasks.Context(), c.key, func(x *expression) string { return x.begins(c.grant) })
		owed = err != nil || old != nil // it may have been broken meanwhile
	case sending.never():
		sending.outlive(c.tasks.Context(), c.opts.Timeout, c.opts.RetryDelay)
	case maybeDone(r.err), readFailed(r.err):
		u.add(c.host.Now())
	}
	c.leftovers.seenThrough(c.req.Key, c.key, c.grant, u, owed)
}
