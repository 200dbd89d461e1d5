package locktest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
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
	ruleIsFree  = "that the key is free is told"
	ruleHolder  = "only a holder is told, never a waiter"
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

// eachHolderIsTold has observers of both clients, one of them slow, and data that is set faster than an observer reads it.
func eachHolderIsTold(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	o, own := e.observe(c, nil), e.observe(a, nil)
	slow := e.observe(c, func(holdfast.Info) { time.Sleep(e.engine.Lease / 100) })
	o.free(ruleIsFree)
	for range 3 {
		for _, client := range []*Client{a, b} {
			lock := e.mine(client)
			o.holds(lock, ruleEach)
			e.release(lock)
			o.free(ruleIsFree)
		}
	}
	e.brokenIf(len(o.all()) != 13, ruleEach, "6 holders and a free key between them: %+v", o.all())
	lock := e.mine(a)
	for _, data := range []string{"1", "2", "3", "", "last"} {
		e.sets(lock, data)
	}
	info := o.holds(lock, ruleEach)
	for _, o := range []*observer{o, own, slow} {
		o.last("observers are told the data that was set last", func(i holdfast.Info) bool { return string(i.Data) == "last" })
	}
	e.noError(c.Break(e.soon(), info), "Break takes what Observe tells")
	for _, o := range []*observer{o, own, slow} {
		o.last("the end of a grant that was broken is told", func(i holdfast.Info) bool { return !i.Held })
	}
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
	if e.NeverExpires {
		time.Sleep(e.engine.Lease * 3 / 2)
		o.holds(lock, "a lock that never expires is told until a break")
		e.breaks(b, e.key)
	}
	o.free("the end of a silent holder is told")
	if !e.NeverExpires && len(early) > 0 {
		e.refuted("the holder knows before any observer is told", "its lock was live")
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
	if b.Expire == nil && !e.NeverExpires {
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

// An observer is a loop over Observe, on a goroutine of its own.
type observer struct {
	e     *env
	ended chan struct{} // closed when the loop has ended
	stop  context.CancelFunc

	mu   sync.Mutex
	told []holdfast.Info
	err  error  // the last pair's
	bad  string // what was told against a rule
}

// observe observes the key of the case until the case ends. each, if not nil, is called by the loop's body.
func (e *env) observe(c *Client, each func(holdfast.Info)) *observer {
	return e.observing(func(ctx context.Context) iter.Seq2[holdfast.Info, error] { return c.Observe(ctx, e.key) }, each)
}

func (e *env) observing(states func(context.Context) iter.Seq2[holdfast.Info, error], each func(holdfast.Info)) *observer {
	ctx, cancel := context.WithCancel(e.ctx)
	o := &observer{e: e, ended: make(chan struct{}), stop: cancel}
	e.Cleanup(func() {
		cancel()
		e.closes(o.ended, e.patience())
	})
	go func() {
		defer close(o.ended)
		for info, err := range states(ctx) {
			o.add(info, err)
			if each != nil && err == nil {
				each(info)
			}
		}
	}()
	return o
}

// add records a pair, and what is wrong with it.
func (o *observer) add(info holdfast.Info, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	complain := func(format string, args ...any) {
		if o.bad == "" {
			o.bad = fmt.Sprintf(format, args...)
		}
	}
	switch {
	case o.err != nil:
		complain("a pair after the error: %+v, %v", info, err)
	case err != nil:
		o.err = err
		if info.Key != "" || info.Held {
			complain("the error comes with %+v", info)
		}
		return
	case info.Key != o.e.key, info.Queue != nil, !info.Held && (info.Owner != "" || info.Token != 0 || info.Grant != ""):
		complain("it is not the state of %q: %+v", o.e.key, info)
	}
	for i, before := range o.told {
		switch {
		case i == len(o.told)-1 && alike(before, info) && before.Stale == info.Stale:
			complain("told twice in a row: %+v", info)
		case !before.Held || !info.Held:
		case before.Token > info.Token:
			complain("token %v after %v", info.Token, before.Token)
		case before.Grant == info.Grant && o.told[len(o.told)-1].Grant != info.Grant:
			complain("a grant has come back that was over: %+v", info)
		}
	}
	o.told = append(o.told, info)
}

// alike reports whether two infos tell the same of the holders.
func alike(a, b holdfast.Info) bool {
	return a.Held == b.Held && slices.EqualFunc(slices.Collect(a.Each()), slices.Collect(b.Each()), func(a, b holdfast.Info) bool {
		return a.Owner == b.Owner && a.Token == b.Token && a.Grant == b.Grant && bytes.Equal(a.Data, b.Data)
	})
}

// all returns what was told so far.
func (o *observer) all() []holdfast.Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.e.brokenIf(o.bad != "", "what is told is a state of the key, none is told twice in a row, and tokens rise", "%s", o.bad)
	return o.told
}

// last insists that the state told last becomes one for which a condition holds.
func (o *observer) last(rule string, cond func(holdfast.Info) bool) holdfast.Info {
	var told []holdfast.Info
	if !o.e.eventually(o.e.patience(), func() bool {
		told = o.all()
		return len(told) > 0 && cond(told[len(told)-1])
	}) {
		o.e.broken(rule, "after %v, it has told only %+v", o.e.patience(), told)
	}
	return told[len(told)-1]
}

// stale insists that all that was told after the first n states is a lock, with Stale.
func (o *observer) stale(lock *holdfast.Lock, n int) {
	for _, info := range o.all()[n:] {
		o.e.brokenIf(!info.Stale || info.Token != lock.Token() || info.Owner != lock.Owner(),
			ruleStale, "a client that is cut off was told %+v", info)
	}
}

// free insists that the observer is told that the key is free.
func (o *observer) free(rule string) {
	o.last(rule, func(i holdfast.Info) bool { return !i.Held && !i.Stale })
}

// holds insists that a lock is told of.
func (o *observer) holds(lock *holdfast.Lock, rule string) holdfast.Info {
	return o.last(rule, func(i holdfast.Info) bool {
		return i.Held && !i.Stale && i.Token == lock.Token() && i.Owner == lock.Owner()
	})
}

// mine acquires the key of the case under an owner name of its own: where there are no tokens,
// nothing else tells two locks of a client apart.
func (e *env) mine(c *Client, opts ...holdfast.Option) *holdfast.Lock {
	return e.hold(c, append(opts, own())...)
}

func own() holdfast.Option { return holdfast.WithOwner(rand.Text()) }

// ends insists that the loop ends within d, in an error.
func (o *observer) ends(d time.Duration, want error) {
	o.e.brokenIf(!o.e.closes(o.ended, d), ruleEnds, "the loop goes on after %v", d)
	o.all()
	o.e.brokenIf(!errors.Is(o.err, want), ruleEnds, "%v, want %v", o.err, want)
}
