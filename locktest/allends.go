package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// lostWhileWaiting breaks a lock of a call that waits for the next key.
func lostWhileWaiting(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(2)
	lock := e.holdKey(b, keys[1])
	w := e.waitAll(a, keys, holdfast.WithRetry(holdfast.Retry{Initial: e.engine.Lease / 100}))
	e.waitsFor(b, keys, 1, w.done)
	old, err := b.Inspect(e.soon(), keys[0])
	e.noError(err, ruleAnswers, "Inspect")
	e.breaks(b, keys[0])
	if !e.eventually(e.engine.Notice+e.handOver(), func() bool {
		info, err := b.Inspect(e.soon(), keys[0])
		return err == nil && info.Held && info.Owner == old.Owner &&
			(info.Token != old.Token || e.engine.Tokenless && info.Grant != old.Grant)
	}) {
		e.broken("a lock that is lost while another is waited for is acquired anew", "nobody has it")
	}
	e.release(lock)
	locks := w.granted(e, e.patience(), "AcquireAll goes on after a loss")
	e.allLive(locks, ruleAllLive)
	e.releaseAll(locks)

	lock = e.holdKey(b, keys[1])
	w = e.waitAll(a, keys, holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
	e.waitsFor(b, keys, 1, w.done)
	e.breaks(b, keys[0])
	const rule = "AcquireAll fails with the loss when its Retry ends"
	w.fails(e, e.engine.Notice+e.engine.Soon, rule, holdfast.ErrLost, holdfast.ErrBroken)
	e.brokenIf(errors.Is(w.err, context.Canceled) || errors.Is(w.err, holdfast.ErrHeld), rule, "it failed with %v", w.err)
	e.release(lock)
	for _, key := range keys {
		e.leavesNothing(key, e.handOver(), ruleAllOrNone)
	}
}

// leaseEndsWhileWaiting has the lease of a call end that has one key and waits for another.
func leaseEndsWhileWaiting(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(2)
	lock := e.holdKey(b, keys[1])
	w := e.waitAll(a, keys)
	e.waitsFor(b, keys, 1, w.done)
	a.Cut()
	if e.engine.NeverExpires {
		time.Sleep(e.engine.Lease)
	} else {
		e.release(e.holdWithin(e.handOver(), b, keys[0]))
	}
	a.Heal()
	e.release(lock)
	locks := w.granted(e, e.patience(), "AcquireAll goes on after an outage")
	e.allLive(locks, ruleAllLive)
	e.releaseAll(locks)
}

func firstEndIsTold(e *env) {
	const rule = "the first end of one of the locks ends them as a whole"
	a, b := e.client(), e.client()
	for i := range 3 {
		keys := e.keys(3)
		for j := range keys {
			keys[j] += string(rune('a' + i))
		}
		locks := e.all(a, keys)
		ctx, cancel := locks.Context(e.ctx)
		e.breaks(b, keys[i])
		e.brokenIf(!e.closes(locks.Done(), e.engine.Notice), rule, "Done is open %v after %q was broken", e.engine.Notice, keys[i])
		first := locks.Err()
		var lost *holdfast.LostError
		e.brokenIf(!errors.As(first, &lost) || lost.Key != keys[i] || !errors.Is(first, holdfast.ErrBroken),
			rule, "Err is %v", first)
		e.brokenIf(!e.closes(ctx.Done(), e.engine.Soon) || context.Cause(ctx) != first,
			"Context ends with the first of the locks, with its Err as the cause", "%v", context.Cause(ctx))
		cancel()
		for j, key := range keys {
			if j != i {
				e.isLive(locks.Lock(key), "the other locks stay held until Release")
				e.isHeld(b, key, "the other locks stay held until Release")
			}
		}
		if err := locks.Release(e.soon()); !errors.Is(err, holdfast.ErrBroken) || errors.Is(err, holdfast.ErrReleasePending) {
			e.broken("Release reports what has ended before", "%v", err)
		}
		e.brokenIf(locks.Err() != first, "the first end never changes", "%v became %v", first, locks.Err())
		for _, key := range keys {
			e.leavesNothing(key, e.handOver(), "Release gives back the other locks")
		}
	}
}

// releaseGoesOn releases locks of which one is over, and has a successor, and then all while the client is cut off.
func releaseGoesOn(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(3)
	locks := e.all(a, keys)
	e.breaks(b, keys[2])
	next := e.holdWithin(e.handOver(), b, keys[2])
	e.failsWith(locks.Release(e.soon()), holdfast.ErrLost, "Release reports what has ended before")
	e.isLive(next, ruleSpares)
	for _, key := range keys[:2] {
		e.leavesNothing(key, e.engine.Soon, "a release that fails does not keep the others")
	}
	e.release(next)

	locks = e.all(a, keys)
	a.Cut()
	err := locks.Release(e.within(e.engine.Lease / 20))
	e.brokenIf(!errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded),
		"a Release that the engine does not confirm in time is pending", "%v", err)
	for _, lock := range locks.All() {
		e.brokenIf(!strings.Contains(err.Error(), lock.Key()), "Release joins the errors of all", "%v", err)
		e.endedBy(lock, "Release ends all locks for their holder", holdfast.ErrReleased)
	}
	a.Heal()
	for _, key := range keys {
		e.leavesNothing(key, e.patience(), "Release gives every key back, if only later")
	}
}

func ttlBeginsWithAll(e *env) {
	const rule = "the TTL begins when all keys are held"
	a, b := e.client(), e.client()
	keys := e.keys(2)
	lock := e.holdKey(b, keys[1])
	ttl := e.short()
	w := e.waitAll(a, keys, holdfast.WithTTL(ttl))
	e.waitsFor(b, keys, 1, w.done)
	first, err := b.Inspect(e.soon(), keys[0])
	e.brokenIf(err != nil || !first.Held, rule, "%+v, %v", first, err)
	time.Sleep(2 * ttl)
	if now, err := b.Inspect(e.soon(), keys[0]); err != nil || now.Grant != first.Grant {
		e.broken(rule, "the first key was given back meanwhile: %+v, %v", now, err)
	}
	freed := time.Now()
	e.release(lock)
	locks := w.granted(e, e.patience(), "AcquireAll is granted what becomes free")
	e.brokenIf(locks.Deadline().Before(freed.Add(ttl)),
		rule, "Deadline is %v after the last key became free", locks.Deadline().Sub(freed))
	left := time.Until(locks.Deadline())
	e.brokenIf(left > ttl, "Deadline is that of the TTL, if the TTL ends before the lease", "%v are left", left)
	e.brokenIf(!e.closes(locks.Done(), ttl+e.engine.Soon) || !errors.Is(locks.Err(), holdfast.ErrTTLExpired),
		ruleTTL, "Err: %v", locks.Err())
	for _, key := range keys {
		e.leavesNothing(key, e.engine.Soon, "at the TTL the holds end in the engine too")
	}
}

func reclaimsEach(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(3)
	var old []*holdfast.Lock
	for _, key := range keys[1:] {
		old = append(old, e.holdKey(a, key, holdfast.WithOwner("worker")))
	}
	e.watches(a)
	locks := e.all(b, keys, reclaim()...)
	for _, lock := range old {
		e.ends(lock, e.engine.Notice, ruleReclaim, holdfast.ErrReclaimed)
	}
	e.allLive(locks, ruleReclaim)
	e.releaseAll(locks)
}

func doAllReleases(e *env) {
	const rule = "DoAll releases, whatever its function does, and joins the errors"
	a, b := e.client(), e.client()
	keys := e.keys(2)
	failed := errors.New("the work failed")
	gives := func(what string) {
		for _, key := range keys {
			e.leavesNothing(key, e.handOver(), rule+": "+what)
		}
	}
	err := a.DoAll(e.soon(), keys, func(ctx context.Context, locks *holdfast.Locks) error {
		e.allLive(locks, "DoAll holds the locks while fn runs")
		e.brokenIf(ctx.Err() != nil, "the ctx of fn ends with the locks", "%v", ctx.Err())
		return failed
	})
	e.brokenIf(!errors.Is(err, failed), rule, "it returned %v", err)
	gives("it failed")
	func() {
		defer func() {
			if recover() != "stop" {
				e.Errorf("%s broken: DoAll does not swallow a panic of its function", e.rule)
			}
		}()
		_ = a.DoAll(e.soon(), keys, func(context.Context, *holdfast.Locks) error { panic("stop") })
	}()
	gives("it panicked")
	err = a.DoAll(e.within(e.patience()), keys, func(ctx context.Context, locks *holdfast.Locks) error {
		e.breaks(b, keys[0])
		if !e.closes(ctx.Done(), e.engine.Notice) || context.Cause(ctx) != locks.Err() {
			e.Errorf("%s broken: the ctx of fn ends with the first of the locks: %v", e.rule, context.Cause(ctx))
		}
		return nil
	})
	e.brokenIf(!errors.Is(err, holdfast.ErrBroken), "DoAll reports that a lock ended while its function ran", "%v", err)
	gives("a lock was lost")
}

// eventsOfEach checks what OnEvent receives of a call that is granted and of one that is not.
func eventsOfEach(e *env) {
	const rule = "OnEvent receives an acquisition for each key, one after the other"
	a, l := e.watched()
	b := e.client()
	keys := e.keys(3)
	e.releaseAll(e.all(a, keys))
	e.holdKey(b, keys[1])
	_, err := a.TryAcquireAll(e.soon(), keys)
	e.closed(a, l) // each that has started is over
	var told []string
	for _, s := range l.of(holdfast.Started) {
		told = append(told, s.Key)
	}
	want := slices.Concat(keys, keys[:2])
	e.brokenIf(!slices.Equal(told, want), rule, "started: %q, want %q", told, want)
	failures := l.of(holdfast.Failed)
	e.brokenIf(len(failures) != 1 || failures[0].Key != keys[1] || !errors.Is(err, failures[0].Err),
		rule, "failed: %+v; the call: %v", failures, err)
	n := len(l.of(endings...))
	e.brokenIf(n != 4, rule, "%d ended, of four that were granted", n)
}

// allBadInput tries bad input on a client that is cut off: it is refused at once, and nothing is sent.
func allBadInput(e *env) {
	a := e.client()
	e.release(e.hold(a))
	a.Cut()
	good, ctx := e.keys(2), e.soon()
	both := func(field, what string, keys []string, opts ...holdfast.Option) {
		_, err := a.AcquireAll(ctx, keys, opts...)
		e.refused(err, field, "AcquireAll, "+what)
		_, err = a.TryAcquireAll(ctx, keys, opts...)
		e.refused(err, field, "TryAcquireAll, "+what)
		err = a.DoAll(ctx, keys, func(context.Context, *holdfast.Locks) error { return nil }, opts...)
		e.refused(err, field, "DoAll, "+what)
	}
	both("keys", "no keys", nil)
	both("keys", "equal keys", []string{good[0], good[1], good[0]})
	for what, key := range invalidKeys(e) {
		both("key", what, []string{good[0], good[1], key})
	}
	both("TTL", "negative TTL", good, holdfast.WithTTL(-1))
	both("owner", "reclaim without owner", good, holdfast.WithReclaim())
	_, err := a.TryAcquireAll(ctx, good, holdfast.WithWait(time.Second))
	e.refused(err, "wait", "TryAcquireAll with WithWait")
	e.refused(a.DoAll(ctx, good, nil), "fn", "DoAll without a function")
	a.Heal()
	for _, key := range good {
		e.leavesNothing(key, e.engine.Soon, ruleNothing)
	}

	done, cancel := context.WithCancel(e.ctx)
	cancel()
	if _, err := a.AcquireAll(done, good); !errors.Is(err, context.Canceled) {
		e.broken("a ctx that has ended ends the call", "%v", err)
	}
	e.close(a)
	if _, err := a.AcquireAll(e.soon(), good); !errors.Is(err, holdfast.ErrClosed) {
		e.broken("every call after Close fails with ErrClosed", "%v", err)
	}
}
