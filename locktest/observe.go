package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

var observeCases = []testCase{
	{"G14_PresentStateFirst", presentStateFirst},
	{"G14_EachHolderIsTold", eachHolderIsTold},
	{"G14_NoWaiterIsTold", noWaiterIsTold},
	{"G14_ExpiryIsTold", expiryIsTold},
	{"G14_GoesOnOverOutages", goesOnOverOutages},
	{"G14_Ends", observeEnds},
}

const (
	rulePresent = "the first state told is the present one"
	ruleEach    = "each change of the holder is told"
	ruleNobody  = "that nobody holds the key is told"
	ruleHolder  = "only a holder is told, never somebody who waits"
	ruleLast    = "the last state is always told"
	ruleStale   = "the last state is told again with Stale during an outage, and without it after that, also if nothing has changed"
	ruleGoesOn  = "Observe goes on over outages and the ends of sessions"
	ruleEnds    = "Observe ends in one pair with an empty Info and the error"
)

// presentStateFirst begins to observe a key that is free, and one that is held. No observer leaves anything.
func presentStateFirst(e *env) {
	a, b := e.client(), e.client()
	for range a.Observe(e.soon(), e.key) {
		break
	}
	o := e.observe(b, nil)
	o.free(rulePresent)
	e.leavesNothing(e.key, e.engine.Soon, "an observer leaves nothing in the engine")
	lock := e.takes(a, e.key, "an observer keeps no other client from the key", own(), holdfast.WithData([]byte("my address")))
	o.holds(lock, ruleEach)
	// A client that observes already knows; one that begins to asks.
	for _, c := range []*Client{a, b} {
		first := e.observe(c, func(holdfast.Info) { e.isHeld(c, e.key, ruleOne) }) // the body may call the client
		info, want := first.holds(lock, rulePresent), e.inspect(c)
		e.brokenIf(!alike(info, want) || info.Lease != want.Lease || !info.QueuedAt.Equal(want.QueuedAt),
			"what is told is what Inspect tells", "%+v, want %+v", info, want)
		e.brokenIf(len(first.all()) != 1, rulePresent, "%+v", first.all())
	}
}

func eachHolderIsTold(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	o := e.observe(c, nil)
	o.free(ruleNobody)
	for range 3 {
		for _, client := range []*Client{a, b} {
			lock := e.mine(client)
			o.holds(lock, ruleEach)
			e.release(lock)
			o.free(ruleNobody)
		}
	}
	e.brokenIf(len(o.all()) != 13, ruleEach, "6 holders and nobody between them: %+v", o.all())
	lock := e.mine(a)
	info := o.holds(lock, ruleEach)
	e.noError(c.Break(e.soon(), info), "Break takes what Observe tells")
	o.last("the end of a grant that was broken is told", func(i holdfast.Info) bool { return !i.Held })
}

func noWaiterIsTold(e *env) {
	a, b := e.client(), e.client()
	lock := e.mine(a)
	o := e.observe(b, nil)
	o.holds(lock, rulePresent)
	next := e.wait(b, own()).waits(b, e.key, 1)
	gone := e.wait(a, own())
	gone.waits(b, e.key, 2)
	e.isHeld(b, e.key, ruleOne)
	late := e.observe(a, nil)
	late.holds(lock, ruleHolder)
	gone.cancel(nil)
	gone.fails(e.engine.Soon, "Acquire returns when its ctx ends")
	e.settle()
	for _, o := range []*observer{o, late} {
		e.brokenIf(len(o.all()) != 1, ruleHolder, "%+v; the holder is %+v", o.all(), e.inspect(a))
	}
	e.release(lock)
	lock = next.granted(e.handOver(), "a waiter is granted the key")
	o.holds(lock, ruleEach)
	late.holds(lock, ruleEach)
}

func expiryIsTold(e *env) {
	a, b := e.client(), e.client()
	lock := e.mine(a)
	early := make(chan struct{}, 1)
	o := e.observe(b, func(info holdfast.Info) {
		if !info.Held && lock.Err() == nil {
			early <- struct{}{}
		}
	})
	o.holds(lock, rulePresent)
	a.Cut()
	if e.engine.NeverExpires {
		time.Sleep(e.engine.Lease * 3 / 2)
		o.holds(lock, "a lock that never expires is told of as long as nobody breaks it")
		e.breaks(b, e.key)
	}
	o.free("the end of a silent holder is told")
	if !e.engine.NeverExpires && len(early) > 0 {
		e.refuted("the holder knows before anybody is told", "its lock was live")
	}
	o.holds(e.mine(b), ruleEach)
}

func goesOnOverOutages(e *env) {
	a, b := e.client(), e.client()
	lock := e.mine(a)
	o := e.observe(b, nil)
	o.holds(lock, rulePresent)
	events := b.Events()
	defer events.Close()
	for range 2 {
		told := len(o.all())
		b.Cut()
		e.next(events.Disconnected(), e.engine.Lease+e.engine.Soon, ruleState)
		o.last(ruleStale, func(i holdfast.Info) bool { return i.Stale })
		o.stale(lock, told)
		e.observe(b, nil).last(ruleStale, func(i holdfast.Info) bool { return i.Stale })
		b.Heal()
		o.holds(lock, ruleStale)
		told = len(o.all())
		b.Cut()
		before := lock
		e.release(lock)
		e.release(e.mine(a))
		lock = e.mine(a)
		e.settle()
		o.stale(before, told)
		b.Heal()
		o.holds(lock, ruleGoesOn)
		for _, info := range o.all()[told:] {
			e.brokenIf(!info.Stale && info.Token == before.Token() && info.Owner == before.Owner(),
				ruleStale, "the state before the outage is told as a new one: %+v", info)
		}
	}
	b.dies()
	if b.Expire == nil && !e.engine.NeverExpires {
		time.Sleep(e.engine.Lease + e.engine.Late)
	}
	b.Heal()
	e.settle()
	o.holds(lock, ruleGoesOn)
	e.release(lock)
	o.free(ruleGoesOn)
	o.holds(e.mine(a), ruleGoesOn)
}

// observeEnds ends loops by their ctx, in an outage as well, and by the Close of their client in the body of one of them.
func observeEnds(e *env) {
	a, b := e.client(), e.client()
	lock := e.mine(a)
	ended := func(c *Client) {
		n := 0
		for info, err := range c.Observe(e.done(), e.key) {
			n++
			e.brokenIf(!errors.Is(err, context.Canceled) || info.Key != "", ruleEnds, "ctx had ended before: %+v, %v", info, err)
		}
		e.brokenIf(n != 1, ruleEnds, "ctx had ended before: %d pairs", n)
	}
	o := e.observe(b, nil)
	o.holds(lock, rulePresent)
	o.stop()
	o.ends(e.engine.Soon, context.Canceled)
	ended(b)
	b.Cut()
	cut := e.observe(b, nil)
	e.settle()
	cut.stop()
	cut.ends(e.engine.Soon, context.Canceled)
	ended(b)
	b.Heal()
	idle := e.observe(b, nil)
	idle.holds(lock, rulePresent)
	closing := e.observe(b, func(holdfast.Info) { e.close(b) })
	idle.ends(e.patience(), holdfast.ErrClosed)
	closing.ends(e.patience(), holdfast.ErrClosed)
	e.observe(b, nil).ends(e.engine.Soon, holdfast.ErrClosed)
}
