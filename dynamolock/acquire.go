package dynamolock

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Acquire implements driver.Driver.
func (b *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	key, err := b.opts.Keys.encode(req.Key)
	if err != nil {
		return driver.Grant{}, err
	}
	b.lookAtTTL()
	a := &acquisition{engine: b, req: req, key: key, grant: newGrant(b.id), cleared: b.foreignTTL()}
	b.enter(a.grant)
	take := a.try
	if req.Wait {
		take = a.wait
	}
	h, err := take(ctx)
	if err != nil {
		b.forget(a.grant)
		if !a.lookedAfter {
			b.errands.left(req.Key, key, a.doubt, false)
		}
		return driver.Grant{}, err
	}
	h.start()
	return driver.Grant{Token: h.token, Lease: h.lease, Hold: h}, nil
}

// An acquisition is one call of Acquire.
type acquisition struct {
	*engine
	req   *driver.Request
	key   attributes
	grant string // the beginning of its guids

	touches uint64 // how many guids it has had
	cleared string // the attribute of the table's Time to Live, as its first write knew it

	doubt       doubt // about requests that got no answer
	lookedAfter bool  // the last of them was left to a goroutine, the doubt with it
}

// try takes the key if nobody has it. What is seen of its holder is kept, so
// that a later try finds out whether it is gone.
func (a *acquisition) try(ctx context.Context) (*hold, error) {
	for {
		h, seen, err := a.write(ctx)
		switch {
		case err != nil:
			if err := a.again(ctx, err); err != nil {
				return nil, err
			}
		case h != nil:
			return h, nil
		case !a.takeable(&seen):
			return nil, &driver.HeldError{Holder: seen.item.info(a.req.Key)}
		}
		// Otherwise it has become free, or its lease is over, since the last look.
	}
}

// wait takes the key as soon as it can be had. Who comes first writes at once,
// since the key may be free, and then polls; others stand in line behind it. To
// reclaim is not for the queue to decide.
func (a *acquisition) wait(ctx context.Context) (*hold, error) {
	t := a.join(a.req.Key)
	defer a.leave(a.req.Key, t)
	again := func(err error) error { // others need not wait for one that rests
		a.rest(a.req.Key, t, true)
		defer a.rest(a.req.Key, t, false)
		return a.again(ctx, err)
	}
	write := a.leads(a.req.Key, t) || a.req.Reclaim
	for {
		// Asked once for both: who comes to lead in between has seen nothing yet.
		leads := a.leads(a.req.Key, t)
		if write || leads && a.ripe() {
			h, _, err := a.write(ctx)
			if h != nil {
				return h, nil
			}
			if err != nil {
				if err := again(err); err != nil {
					return nil, err
				}
			}
			write = err != nil
			continue
		}
		if a.req.Reclaim && a.holding(a.req.Key, a.req.Owner) {
			return nil, a.waitedFor(a.req.Key) // its own client's, and live
		}
		if leads {
			if err := a.poll(ctx, a.req.Key, a.key); err != nil {
				if err := again(err); err != nil {
					return nil, err
				}
			}
			continue
		}
		select {
		case <-t.up:
		case <-ctx.Done():
			return nil, a.waitedFor(a.req.Key)
		}
	}
}

// ripe reports whether a write might get the key, as far as is known.
func (a *acquisition) ripe() bool {
	seen := a.observed(a.req.Key)
	return seen.item == nil || a.takeable(&seen) || a.reclaimable(seen.item)
}

// reclaimable reports whether an item is a hold that the request is to end.
func (a *acquisition) reclaimable(i *item) bool {
	return a.req.Reclaim && i.held() && i.owner == a.req.Owner && !i.belongs(a.id) &&
		(i.form == tokenless) == (a.opts.Mode == FailClosed)
}

// again waits before another try, if the failure was transient and the user's
// Retry allows one.
func (a *acquisition) again(ctx context.Context, err error) error {
	if ctx.Err() != nil || !transient(err) {
		return err
	}
	a.failed(a.req.Key, err)
	return a.req.Retry(ctx, err, a.wake(err))
}

// answer is what came of a write.
type answer struct {
	updated attributes // it was carried out
	old     *item      // it was not: this was in the way
	err     error
}

// write sends the one request that takes the key: if it is free, or left of an
// earlier hold that is to be reclaimed, or still as it was when it was seen to
// be abandoned. It returns the hold; or, with no error, what is in the way. When
// ctx ends it returns at once: a request that was sent is seen through in the
// background then, and what it has taken is given back.
func (a *acquisition) write(ctx context.Context) (*hold, observation, error) {
	if !a.errands.admit(ctx, a.req.Key) {
		return nil, observation{}, a.waitedFor(a.req.Key)
	}
	if !a.tasks.begin() {
		return nil, observation{}, holdfast.ErrClosed
	}
	sent, left := a.host.Now(), a.abandoned()
	e := a.expression(sent, left)
	detached, cancel := a.tasks.detach(ctx)
	sending := newSending()
	answered := make(chan answer) // unbuffered: either the caller has it or nobody
	gone := make(chan struct{})   // closed when the caller has gone
	go func() {
		defer a.tasks.end()
		defer cancel()
		var r answer
		r.updated, r.old, r.err = a.update(sending.trace(detached), a.key, e)
		select {
		case answered <- r:
		case <-gone:
			a.seeThrough(sent, sending, r)
		}
	}()
	select {
	case r := <-answered:
		return a.judge(sent, left, r)
	case <-ctx.Done():
		a.lookedAfter = true
		a.errands.gaveUp(a.req.Key, a.key)
		if sending.never() {
			cancel()
		}
		close(gone)
		return nil, observation{}, a.waitedFor(a.req.Key)
	}
}

// abandoned returns the item that was seen, if it may be taken as it is; else nil.
func (a *acquisition) abandoned() *item {
	if seen := a.observed(a.req.Key); a.takeable(&seen) {
		return seen.item
	}
	return nil
}

// judge says what an answer means; left is the item that the write was to take.
func (a *acquisition) judge(sent driver.Instant, left *item, r answer) (*hold, observation, error) {
	switch {
	case maybeDone(r.err):
		a.doubt.add(sent, a.host.Now())
		return nil, observation{}, r.err
	case r.err != nil:
		return nil, observation{}, r.err
	case r.old == nil:
		own, err := decode(a.opts.Table, r.updated)
		if err == nil && !(own.held() && own.belongs(a.grant)) {
			err = &ItemError{Table: a.opts.Table, Attribute: attrGUID, Reason: "is not the one that was written"}
		}
		if err != nil {
			a.doubt.add(sent, a.host.Now())
			return nil, observation{}, fmt.Errorf("the answer to UpdateItem: %w", err)
		}
		return a.granted(own, sent), observation{}, nil
	case r.old.held() && r.old.belongs(a.grant):
		// An earlier try was carried out, and this one met it: one of ours, or
		// one that a wrapper of the SDK made by itself.
		if !a.doubt.none() {
			sent = a.doubt.first
			a.doubt.requests--
		}
		return a.granted(r.old, sent), observation{}, nil
	}
	if a.opts.Mode == FailClosed && r.old.form != absent && r.old.form != tokenless {
		return nil, observation{}, &ItemError{
			Table: a.opts.Table, Attribute: attrLease, Reason: "is there: the key is used with another mode than FailClosed",
		}
	}
	if left != nil && left.form != absent && left.same(r.old) {
		// Trying again would go on for ever, as fast as the network allows.
		return nil, observation{}, &ItemError{
			Table: a.opts.Table, Attribute: attrGUID, Reason: "is that of a key that is free, and the key cannot be taken",
		}
	}
	return nil, a.see(a.req.Key, r.old), nil
}

// seeThrough looks after a write whose caller has gone.
func (a *acquisition) seeThrough(sent driver.Instant, sending *sending, r answer) {
	owed := false
	switch taken := r.err == nil && (r.old == nil || r.old.held() && r.old.belongs(a.grant)); {
	case taken:
		_, err := a.giveBack(a.tasks.ctx, a.key, func(e *expression) string { return e.begins(a.grant) })
		owed = err != nil
	case sending.never():
		sending.outlive(a.tasks.ctx, a.opts.Timeout, a.opts.RetryDelay)
	case maybeDone(r.err):
		a.doubt.add(sent, a.host.Now())
	}
	a.errands.seenThrough(a.req.Key, a.key, a.doubt, owed)
}

// forever stands in for the lease of a lock that never expires.
const forever = time.Duration(math.MaxInt64 / 4)

// granted makes a hold of the own item; sent is a moment before it was written.
func (a *acquisition) granted(own *item, sent driver.Instant) *hold {
	a.took(a.req.Key, own)
	h := &hold{
		engine:  a.engine,
		name:    a.req.Key,
		key:     a.key,
		grant:   a.grant,
		token:   own.token,
		owner:   a.req.Owner,
		lose:    a.req.Lost,
		doubt:   a.doubt,
		begun:   sent,
		touches: a.touches,
		cleared: a.cleared,
	}
	if a.opts.Mode == FailOpen {
		h.lease = a.host.NewLease(a.opts.Lease, holdfast.ErrLeaseExpired)
	} else {
		h.lease = a.host.NewLease(forever, holdfast.ErrLeaseExpired)
	}
	h.lease.Renew(sent)
	return h
}
