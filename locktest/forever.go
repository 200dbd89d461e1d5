package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	ruleForever = "without a lease a holder keeps the key, however long it is silent"
	ruleFreed   = "a break frees the key of a silent holder"
)

// newer insists that tokens rise from grant to grant, or that both are 0 where there are none.
func (e *env) newer(next, earlier holdfast.Token, rule string) {
	switch {
	case e.engine.Tokenless:
		e.brokenIf(next != 0 || earlier != 0, "an engine without tokens gives 0", "%v after %v", next, earlier)
	case next <= earlier:
		e.refuted(rule, "%v after %v", next, earlier)
	}
}

// outlasts insists that a silent holder keeps its key for longer than a lease, and knows it.
func (e *env) outlasts(c *Client, lock *holdfast.Lock) {
	e.keptFrom(c, lock.Key())
	e.brokenIf(lock.Err() != nil || isClosed(lock.Done()), ruleForever, "its lock has ended: %v", lock.Err())
	left := time.Until(lock.Deadline())
	e.brokenIf(left < e.engine.Lease, "without a lease the Deadline is far away", "it is %v from now", left)
}

// keptFrom insists that c does not get a key, even after a lease.
func (e *env) keptFrom(c *Client, key string) {
	ctx := e.within(e.engine.Lease * 3 / 2) // enough for a lease to expire, and to notice that
	lock, err := c.Acquire(ctx, key)
	switch {
	case err == nil:
		e.broken(ruleForever, "Acquire(%q) was granted, token %v", key, lock.Token())
	case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil:
		e.broken(ruleForever, "Acquire(%q): %v, want it to wait for as long as ctx allows", key, err)
	}
	e.isHeld(c, key, ruleForever) // the last look may have timed out
}

// breaks breaks the lock of a key, as an operator does.
func (e *env) breaks(c *Client, key string) {
	info, err := c.Inspect(e.soon(), key)
	if err == nil {
		err = c.Break(e.soon(), info)
	}
	e.noError(err, "Break removes the grant that its Info describes")
}

// inherits has c take over the key of a silent holder: after its lease or, without one, after a break.
func (e *env) inherits(c *Client, key string) *holdfast.Lock {
	if !e.engine.NeverExpires {
		return e.holdWithin(e.handOver(), c, key)
	}
	e.keptFrom(c, key)
	e.breaks(c, key)
	lock, err := c.Acquire(e.within(e.handOver()), key)
	e.brokenIf(err != nil, ruleFreed, "Acquire(%q): %v", key, err)
	return lock
}

// keepsForever has client a fall silent: without leases it keeps its lock, and learns of a break when it is back.
func (e *env) keepsForever(a *Client, silence, speak func()) {
	b := e.client()
	kept, broken := e.holdKey(a, e.prefix+"kept"), e.holdKey(a, e.prefix+"broken")
	silence()
	e.outlasts(b, broken)
	e.outlasts(b, kept)
	e.breaks(b, broken.Key())
	next, err := b.Acquire(e.within(e.handOver()), broken.Key())
	e.noError(err, ruleFreed, "Acquire")
	speak()
	e.ends(broken, e.engine.Notice+e.engine.Lease, "a holder whose lock was broken learns of it when it can be reached again", holdfast.ErrBroken)
	e.noError(kept.Verify(e.within(e.patience())), ruleForever, "Verify")
	e.isLive(next, ruleOne)
	e.newer(next.Token(), broken.Token(), "the next grant has a greater token")
	e.release(next)
	e.release(kept)
}
