package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

var endCases = []testCase{
	{"G3_TokensRise", tokensRise},
	{"G4_FirstEndWins", firstEndWins},
	{"G4_CauseIsNamed", causeIsNamed},
}

const (
	ruleFirstEnd = "the first end of a lock wins and never changes"
	ruleTold     = "a holder learns that another client ended its live lease on purpose"
)

// ways are the ends that take effect at once.
func (e *env) ways(c, probe *Client) map[string]func(*holdfast.Lock) error {
	return map[string]func(*holdfast.Lock) error{
		"release": func(k *holdfast.Lock) error {
			e.release(k)
			return holdfast.ErrReleased
		},
		"TTL": func(k *holdfast.Lock) error {
			e.noError(k.Extend(time.Millisecond), ruleAnswers, "Extend")
			e.ends(k, e.engine.Soon, "an extended TTL counts from now", holdfast.ErrTTLExpired)
			return holdfast.ErrTTLExpired
		},
		"break": func(k *holdfast.Lock) error {
			e.breaks(probe, k.Key())
			e.ends(k, e.engine.Notice, ruleTold, holdfast.ErrBroken)
			return holdfast.ErrBroken
		},
	}
}

func firstEndWins(e *env) {
	probe := e.client()
	a := e.client()
	ended := make(map[string]*holdfast.Lock)
	first := make(map[string]error)
	for name, end := range e.ways(a, probe) {
		lock := e.holdKey(a, e.prefix+name, holdfast.WithOwner(name))
		want := end(lock)
		e.endedBy(lock, ruleFirstEnd, want)
		ended[name], first[name] = lock, lock.Err()
		next := e.holdWithin(e.patience(), probe, lock.Key())
		released := lock.Err()
		if want == holdfast.ErrReleased {
			released = nil
		}
		err := lock.Release(e.soon())
		e.brokenIf(!errors.Is(err, released), "Release after the end reports that end", "after %s: %v", name, err)
		e.failsWith(lock.Extend(time.Hour), lock.Err(), "Extend never revives a lock", "after "+name)
		e.failsWith(lock.Verify(e.soon()), lock.Err(), "Verify after the end reports that end", "after "+name)
		e.isLive(next, ruleSpares+", after its own end by "+name)
	}
	check := func(after string) {
		for name, lock := range ended {
			e.brokenIf(!isClosed(lock.Done()) || lock.Err() != first[name],
				ruleFirstEnd, "it ended by %s (%v); after %s Err is %v", name, first[name], after, lock.Err())
		}
	}
	check("Release, Extend and Verify")
	a.Cut()
	time.Sleep(e.engine.Lease)
	check("the end of the lease")
	a.Heal()
	_ = a.Close(e.within(e.patience()))
	check("Close")
}

// causeIsNamed ends locks by a break, a reclaim, and the silence of their client. None comes back to life.
func causeIsNamed(e *env) {
	a, b := e.client(), e.client()
	broken, reclaimed := e.holdKey(a, e.prefix+"broken"), e.holdKey(a, e.prefix+"reclaimed", holdfast.WithOwner("me"))
	e.ways(a, b)["break"](broken)
	e.watches(a)
	e.holdWithin(e.patience(), b, reclaimed.Key(), holdfast.WithOwner("me"), holdfast.WithReclaim())
	e.ends(reclaimed, e.engine.Notice, ruleTold, holdfast.ErrReclaimed)
	silent, end := e.hold(a), expired
	a.Cut()
	if e.NeverExpires {
		e.outlasts(b, silent)
		e.breaks(b, e.key)
		end = []error{holdfast.ErrBroken}
		a.Heal()
	}
	e.ends(silent, e.handOver(), ruleAlone, end...)
	a.Heal()
	again := e.holdWithin(e.patience(), a, e.key)
	e.newer(again.Token(), silent.Token(), "the next grant has a greater token")
	time.Sleep(e.engine.Lease)
	e.isLive(again, ruleRenewed)
	for lock, causes := range map[*holdfast.Lock][]error{broken: {holdfast.ErrBroken}, reclaimed: {holdfast.ErrReclaimed}, silent: end} {
		err := lock.Err()
		var lost *holdfast.LostError
		e.brokenIf(!errors.As(err, &lost) || lost.Key != lock.Key() || lost.Owner != lock.Owner() || lost.Token != lock.Token(),
			"a LostError says which hold was lost", "%#v", err)
		e.brokenIf(!errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrReleased) || errors.Is(err, holdfast.ErrTTLExpired),
			"Err matches exactly one of ErrReleased, ErrTTLExpired and ErrLost", "%v", err)
		e.endedBy(lock, "a loss names its cause", causes...)
		for name, err := range map[string]error{
			"Extend": lock.Extend(time.Hour), "Verify": lock.Verify(e.soon()), "Release": lock.Release(e.soon()),
		} {
			e.failsWith(err, holdfast.ErrLost, "a lock never comes back to life", name)
		}
	}
	e.isLive(again, "calls on a lost lock do not touch a later lock of the same client")
}

// tokensRise ends one hold after the other, in every possible way.
func tokensRise(e *env) {
	probe := e.client()
	var last holdfast.Token
	after := "nothing"
	for _, way := range []string{"a release", "its TTL", "its client's Close", "a break", "a cut past its lease", "its session's end", ""} {

		c := e.client()
		lock := e.holdWithin(e.patience(), c, e.key)
		e.newer(lock.Token(), last, "tokens of a key strictly increase, after an end by "+after)
		last, after = lock.Token(), way
		switch way {
		case "a release":
			e.release(lock)
		case "its TTL":
			e.ways(c, probe)["TTL"](lock)
		case "its client's Close":
			e.close(c)
		case "a break":
			e.breaks(probe, e.key)
		case "a cut past its lease":
			c.Cut()
		case "its session's end":
			c.dies()
		}
		if e.NeverExpires && (way == "a cut past its lease" || way == "its session's end") {
			e.keptFrom(probe, e.key)
			e.breaks(probe, e.key)
		}
	}
}

const (
	ruleForever = "without a lease a holder keeps the key, however long it is silent"
	ruleFreed   = "a break frees the key of a silent holder"
)

// newer insists that tokens rise from grant to grant, or that both are 0 where there are none.
func (e *env) newer(next, earlier holdfast.Token, rule string) {
	switch {
	case e.Tokenless:
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
	if !e.NeverExpires {
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
	e.ends(broken, e.engine.Notice+e.engine.Lease, "a holder that can be reached again learns of a break", holdfast.ErrBroken)
	e.noError(kept.Verify(e.within(e.patience())), ruleForever, "Verify")
	e.isLive(next, ruleOne)
	e.newer(next.Token(), broken.Token(), "the next grant has a greater token")
	e.release(next)
	e.release(kept)
}
