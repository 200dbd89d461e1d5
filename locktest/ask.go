package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

var askCases = []testCase{
	{"G17_AskedOnce", askedOnce},
	{"G17_AskedAsTheWaitEnds", askedAsTheWaitEnds},
	{"G17_AskedWhileCutOff", askedWhileCutOff},
	{"G17_OnlyTheOneAsked", onlyTheOneAsked},
	{"G17_NothingElseChanges", nothingElseChanges},
	{"G17_EndsKeepTheirCauses", endsKeepTheirCauses},
	{"G17_NotAfterTheEnd", notAfterTheEnd},
	{"G17_AskingTheDead", askingTheDead},
}

const (
	ruleAsk      = "the holder is told that another client asks for its lock"
	ruleAskOnce  = "the holder is told once, however often it is asked, by the lock, an event and OnEvent"
	ruleAskNoEnd = "an ask is a wish: the lock lives on"
	ruleAskOnly  = "an ask reaches the grant that it was meant for, and no other"
	ruleAskElse  = "an ask changes nothing that others read of the lock"
)

// asks asks for the lock of a key, and returns the grant that it has asked for.
func (e *env) asks(c *Client, key string) holdfast.Info {
	info, err := c.Inspect(e.soon(), key)
	if err == nil {
		err = c.Ask(e.soon(), info)
	}
	e.noError(err, "Ask returns nil once the engine has kept the wish")
	return info
}

// asked insists that a holder is told within d.
func (e *env) asked(lock *holdfast.Lock, d time.Duration) {
	e.brokenIf(!e.closes(lock.Asked(), d), ruleAsk, "Asked is open %v after Ask has returned; Err: %v", d, lock.Err())
}

// unasked gives a holder the time to be told, and insists that it is not.
func (e *env) unasked(rule string, locks ...*holdfast.Lock) {
	time.Sleep(e.engine.Lease / 2)
	for _, lock := range locks {
		e.brokenIf(isClosed(lock.Asked()), rule, "Asked of %q (token %v) is closed", lock.Key(), lock.Token())
	}
}

func askedOnce(e *env) {
	a, l := e.watched()
	b, c := e.client(), e.client()
	events := a.Events()
	defer events.Close()
	began := time.Now()
	lock := e.hold(a, holdfast.WithOwner("the asked"))
	e.asks(b, e.key) // before the holder can have looked
	e.sets(lock, "new")
	e.asked(lock, e.engine.Notice)
	e.isLive(lock, ruleAskNoEnd)
	event := e.next(events.Asked(), e.engine.Soon, ruleAskOnce)
	e.brokenIf(event.Kind != holdfast.Asked || event.Key != lock.Key() || event.Owner != lock.Owner() || event.Token != lock.Token() ||
		event.Err != nil || event.Seq == 0 || event.Time.Before(began) || event.Time.After(time.Now()), ruleAskOnce, "the event is %+v", event)
	e.asks(b, e.key)
	e.asks(c, e.key)
	e.asks(a, e.key) // itself, too
	e.unasked(ruleAskOnce)
	e.silent(ruleAskOnce, events.Asked(), events.Lost(), events.TTLExpired())
	e.isLive(lock, ruleAskNoEnd)
	e.release(lock)
	e.closed(a, l)
	granted, wishes := l.of(outcomes...), l.of(holdfast.Asked)
	e.brokenIf(len(granted) != 1 || len(wishes) != 1, ruleAskOnce, "OnEvent: %+v", wishes)
	e.brokenIf(wishes[0] != event || event.ID != granted[0].ID || event.Took != event.Time.Sub(granted[0].Time),
		ruleAskOnce, "OnEvent received %+v, the channel %+v", wishes, event)
}

// askedAsTheWaitEnds asks while Acquire is about to return.
func askedAsTheWaitEnds(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	lock := e.hold(a)
	for i := range 5 {
		owner := fmt.Sprint("holder ", i)
		w := e.wait(b, holdfast.WithOwner(owner)).waits(c, e.key, 1)
		done := later(func() error { return lock.Release(e.soon()) })
		e.becomes(e.patience(), ruleNext, func() (bool, any) { return e.inspect(c).Owner == owner, nil })
		e.noError(c.Ask(e.soon(), e.inspect(c)), ruleAskOnly, "Ask of the present holder")
		next := w.granted(e.engine.Soon, ruleNext)
		e.asked(next, e.engine.Notice)
		e.noError(<-done, "a release that others wait for succeeds")
		lock, a, b = next, b, a
	}
	e.isLive(lock, ruleAskNoEnd)
}

func askedWhileCutOff(e *env) {
	a, b, lock := e.held()
	events := a.Events()
	defer events.Close()
	a.Cut()
	info := e.inspect(b)
	e.noError(b.Ask(e.soon(), info), "Ask does not wait until the holder has heard of it")
	e.settle()
	e.brokenIf(isClosed(lock.Asked()), ruleAsk, "Asked is closed although nothing can have reached the holder")
	a.Heal()
	e.asked(lock, e.engine.Notice+e.engine.Lease/2)
	e.next(events.Asked(), e.engine.Soon, ruleAskOnce)
	e.isLive(lock, ruleAskNoEnd)
	b.Cut()
	err := b.Ask(e.within(e.engine.Lease/20), info)
	e.brokenIf(!errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected),
		"Ask gives up with its ctx, and says what it waited for", "%v", err)
	e.release(lock)
}

func onlyTheOneAsked(e *env) {
	a, b := e.client(), e.client()
	owner := holdfast.WithOwner("worker")
	neighbour := e.holdKey(a, e.prefix+"neighbour", owner)
	old := e.hold(a, owner)
	before := e.asks(b, e.key)
	e.asked(old, e.engine.Notice)
	e.release(old)
	e.failsWith(b.Ask(e.soon(), before), holdfast.ErrChanged, ruleAskOnly, "Ask of a grant that is over")
	again := e.hold(a, owner)
	e.failsWith(b.Ask(e.soon(), before), holdfast.ErrChanged, ruleAskOnly, "Ask of the grant before the present one")
	w := e.wait(b, owner).waits(b, e.key, 1)
	e.unasked(ruleAskOnly, again, neighbour)
	e.asks(b, e.key)
	e.asked(again, e.engine.Notice)
	e.release(again)
	next := w.granted(e.patience(), ruleNext)
	e.unasked(ruleAskOnly, next, neighbour)
	e.release(next)
}

func nothingElseChanges(e *env) {
	a, b := e.client(), e.client()
	for key, data := range map[string]string{e.key: "what\x00it is\xff for", e.key + " bare": ""} {
		lock := e.holdKey(a, key, holdfast.WithOwner("worker"), holdfast.WithData([]byte(data)))
		before, token, deadline := e.told(b, key), lock.Token(), lock.Deadline()
		for range 2 {
			e.asks(b, key)
			after := e.told(b, key)
			e.brokenIf(!slices.Equal(after, before), ruleAskElse, "%q, and it was %q", after, before)
			e.asked(lock, e.engine.Notice)
		}
		e.brokenIf(lock.Token() != token, ruleAskElse, "the holder's token is %v, and was %v", lock.Token(), token)
		e.brokenIf(lock.Deadline().Before(deadline), ruleAskElse, "the Deadline is %v, and was %v", lock.Deadline(), deadline)
		e.isHeld(b, key, ruleAskNoEnd)
		e.isLive(lock, ruleAskNoEnd)
		e.release(lock)
		next := e.takes(b, key, ruleFree)
		e.newer(next.Token(), lock.Token(), "the next grant has a greater token")
		e.release(next)
	}
}

// endsKeepTheirCauses ends locks right after an ask, or at the same time.
func endsKeepTheirCauses(e *env) {
	const rule = "a lock that was asked for ends like any other, and says why"
	a, b := e.client(), e.client()
	var locks []*holdfast.Lock
	for _, key := range e.keys(5) {
		lock := e.holdKey(a, key, holdfast.WithOwner("worker"))
		e.watches(a)
		info := e.asks(b, key)
		e.noError(b.Break(e.soon(), info), "Break removes the grant that its Info describes, asked for or not")
		locks = append(locks, lock)
	}
	for _, lock := range locks {
		e.ends(lock, e.engine.Notice, rule, holdfast.ErrBroken)
	}
	old := e.hold(a, holdfast.WithOwner("worker"))
	e.watches(a)
	e.asks(b, e.key)
	e.asked(old, e.engine.Notice)
	lock := e.hold(b, reclaim()...)
	e.ends(old, e.engine.Notice, rule, holdfast.ErrReclaimed)
	e.isLive(lock, ruleReclaim)
	e.unasked(ruleAskOnly, lock)
	e.asks(a, e.key)
	e.release(lock)
	e.endedBy(lock, rule, holdfast.ErrReleased)
	e.leavesNothing(e.key, e.handOver(), ruleNothing)
}

func notAfterTheEnd(e *env) {
	const rule = "a lock that has ended is not asked for"
	a, l := e.watched()
	b := e.client()
	events := a.Events()
	lock := e.hold(a)
	info := e.inspect(b)
	a.Cut()
	_ = lock.Release(e.done()) // which does not arrive yet
	e.noError(b.Ask(e.soon(), info), "Ask of a lock whose release is under way")
	a.Heal()
	e.noError(lock.Release(e.within(e.patience())), "a release is sent until it is confirmed")
	e.unasked(rule, lock)
	e.silent(rule, events.Asked())
	events.Close()
	e.closed(a, l)
	wishes := l.of(holdfast.Asked)
	e.brokenIf(len(wishes) > 0, rule, "OnEvent: %+v", wishes)
}
