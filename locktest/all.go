package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// The root package tests what AcquireAll does with any engine. These cases test it with the faults and the times of one.
var allCases = []testCase{
	{"G18_EachIsALock", eachIsALock},
	{"G18_OppositeOrders", oppositeOrders},
	{"G18_NothingHalf", nothingHalf},
	{"G18_NothingHalfWhileCut", nothingHalfWhileCut},
	{"G18_OneDeadline", oneDeadline},
	{"G18_TryTakesAllOrNone", tryTakesAllOrNone},
	{"G18_LostWhileWaiting", lostWhileWaiting},
	{"G18_LeaseEndsWhileWaiting", leaseEndsWhileWaiting},
	{"G18_FirstEndIsTold", firstEndIsTold},
}

const (
	ruleAllOrNone = "an AcquireAll that fails gives back everything"
	ruleAllLive   = "what AcquireAll returns is live as a whole"
)

// all takes keys that are free, or become free.
func (e *env) all(c *Client, keys []string, opts ...holdfast.Option) *holdfast.Locks {
	locks, err := c.AcquireAll(e.within(e.patience()), keys, opts...)
	e.noError(err, "keys that are free are granted together", "AcquireAll")
	return locks
}

// allLive insists that locks are live, one by one and as a whole.
func (e *env) allLive(locks *holdfast.Locks, rule string) {
	e.areLive(locks.All(), rule)
	e.brokenIf(locks.Err() != nil || isClosed(locks.Done()), rule, "each is live, and all together are over: %v", locks.Err())
	e.noError(locks.Verify(e.soon()), rule, "Verify")
}

// releaseAll releases locks and insists on the confirmation.
func (e *env) releaseAll(locks *holdfast.Locks) {
	e.noError(locks.Release(e.soon()), "Release of live locks returns nil once the engine has confirmed")
}

// waitsFor waits until a call that acquires keys in turn has those before the one at i and waits for that.
func (w *waiter) waitsFor(probe *Client, keys []string, i int) {
	for _, key := range keys[:i] {
		w.e.becomes(w.e.engine.Soon, "AcquireAll takes key after key", func() (bool, any) {
			info, err := probe.Inspect(w.e.soon(), key)
			return err == nil && info.Held, key
		})
	}
	w.waits(probe, keys[i], 1)
}

// waitAll calls AcquireAll on a goroutine.
func (e *env) waitAll(c *Client, keys []string, opts ...holdfast.Option) *waiter {
	return e.waitFor(func(ctx context.Context, w *waiter) { w.locks, w.err = c.AcquireAll(ctx, keys, opts...) })
}

// servedAll insists that a call of AcquireAll succeeds, with locks that are live, and releases them.
func (w *waiter) servedAll(rule string) {
	w.granted(w.e.patience(), rule)
	w.e.allLive(w.locks, ruleAllLive)
	w.e.releaseAll(w.locks)
}

func eachIsALock(e *env) {
	const rule = "each of the locks is one like any other"
	a, b := e.client(), e.client()
	keys := e.keys(3)
	locks := e.all(a, []string{keys[2], keys[0], keys[1]}, holdfast.WithOwner("both"), holdfast.WithData([]byte("data")))
	var got []string
	for _, lock := range locks.All() {
		got = append(got, lock.Key())
		e.brokenIf(locks.Lock(lock.Key()) != lock, rule, "Lock(%q) is another", lock.Key())
		holder := e.isHeld(b, lock.Key(), ruleOne).Holder
		e.brokenIf(holder.Owner != "both" || string(holder.Data) != "data" || holder.Token != lock.Token(),
			rule, "the engine knows it as %+v", holder)
	}
	e.brokenIf(!slices.Equal(got, keys) || locks.Lock(e.key) != nil,
		"All has the locks in the order of their keys, and Lock finds each", "%q, want %q", got, keys)
	e.allLive(locks, rule)
	for _, lock := range locks.All() {
		e.brokenIf(locks.Deadline().After(lock.Deadline()), "Deadline is the earliest of all", "that of %q is earlier", lock.Key())
	}
	waiter := e.waitKey(b, keys[1], nil).waits(b, keys[1], 1)
	e.releaseAll(locks)
	next := waiter.granted(e.handOver(), "Release gives every key back")
	e.newer(next.Token(), locks.Lock(keys[1]).Token(), "the next grant has a greater token")
	e.release(next)
	e.leavesNothingOf(keys, e.engine.Soon, "Release gives every key back")
}

// oppositeOrders has clients ask for the same keys in every order. The sections must not overlap.
func oppositeOrders(e *env) {
	const clients, rounds = 4, 2
	keys := e.keys(3)
	var inside [3]crowd
	var group sync.WaitGroup
	for range clients {
		c := e.client()
		group.Go(func() {
			for range rounds {
				order := rand.Perm(len(keys))
				ask := []string{keys[order[0]], keys[order[1]]} // two of three
				err := c.DoAll(e.ctx, ask, func(ctx context.Context, locks *holdfast.Locks) error {
					for _, i := range order[:2] {
						lock := locks.Lock(keys[i])
						if lock == nil {
							return fmt.Errorf("%q is not among them", keys[i])
						}
						defer inside[i].enter(e, ruleOne, lock)()
					}
					time.Sleep(e.engine.Lease / 100)
					return locks.Err()
				})
				if err != nil {
					e.Error(e.breach("calls that ask for the same keys in any order are all served, one at a time", "%v", err))
				}
			}
		})
	}
	group.Wait()
	e.leavesNothingOf(keys, e.engine.Soon, ruleNothing)
}

// nothingHalf ends a call at each key: by its ctx, by WithWait, and by Close.
func nothingHalf(e *env) {
	b := e.client()
	for i := range 3 {
		for _, way := range []string{"ctx", "wait", "Close"} {
			keys := e.keys(3)
			for j := range keys {
				keys[j] += way + fmt.Sprint(i)
			}
			a := e.client()
			lock := e.holdKey(b, keys[i])
			asked := []string{keys[1], keys[2], keys[0]}
			if way == "wait" {
				_, err := a.AcquireAll(e.within(e.patience()), asked, holdfast.WithWait(e.engine.Lease/5))
				var held *holdfast.HeldError
				if !errors.Is(err, holdfast.ErrDisconnected) { // a real engine may not have answered yet
					e.brokenIf(!errors.As(err, &held) || held.Key != keys[i] || held.Holder.Token != lock.Token(),
						"when WithWait elapses, AcquireAll fails with a HeldError that names the holder", "%v", err)
				}
			} else {
				w := e.waitAll(a, asked)
				w.waitsFor(b, keys, i)
				if way == "ctx" {
					w.gone(holdfast.ErrHeld, holdfast.ErrDisconnected)
				} else {
					e.close(a)
					e.failsWith(w.fails(e.engine.Soon, "Close ends every call that waits"), holdfast.ErrClosed, ruleClosed)
				}
			}
			e.isLive(lock, ruleOne)
			e.release(lock)
			e.leavesNothingOf(keys, e.engine.Soon, ruleAllOrNone)
		}
	}
}

// nothingHalfWhileCut ends a call that holds a key and cannot reach the engine.
func nothingHalfWhileCut(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(2)
	lock := e.holdKey(b, keys[1])
	w := e.waitAll(a, keys)
	w.waitsFor(b, keys, 1)
	a.Cut()
	time.Sleep(e.engine.Lease / 20)
	w.gone(holdfast.ErrHeld, holdfast.ErrDisconnected)
	a.Heal()
	e.leavesNothing(keys[0], e.patience(), ruleAllOrNone)
	e.release(lock)
	e.leavesNothing(keys[1], e.patience(), ruleAllOrNone)
	e.releaseAll(e.all(a, keys))
}

// oneDeadline has a call wait for two keys, for each of them half of its time and more.
func oneDeadline(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(2)
	first := e.holdKey(b, keys[0])
	e.holdKey(b, keys[1])
	wait := e.engine.Lease / 2
	began := time.Now()
	w := e.waitAll(a, keys, holdfast.WithWait(wait))
	time.Sleep(wait * 3 / 5)
	e.release(first)
	w.fails(wait+e.engine.Soon, "WithWait bounds the wait for all keys")
	took := time.Since(began)
	e.brokenIf(took < wait || took > wait+e.engine.Soon, "WithWait bounds the wait for all keys together", "%v, after %v", wait, took)
	e.leavesNothing(keys[0], e.engine.Soon, ruleAllOrNone)
}

func tryTakesAllOrNone(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(3)
	for i, key := range keys {
		lock := e.holdKey(b, key)
		_, err := a.TryAcquireAll(e.soon(), keys)
		var held *holdfast.HeldError
		e.brokenIf(!errors.As(err, &held) || held.Key != key || held.Holder.Owner != b.Owner() || held.Holder.Token != lock.Token(),
			"TryAcquireAll fails with a HeldError that names the holder in the way", "key %d is held: %v", i, err)
		e.isLive(lock, ruleOne)
		e.release(lock)
		e.leavesNothingOf(keys, e.engine.Soon, "a TryAcquireAll that fails gives back everything")
	}
	locks, err := a.TryAcquireAll(e.soon(), keys)
	e.noError(err, "TryAcquireAll takes keys that are free")
	e.allLive(locks, ruleAllLive)
	e.releaseAll(locks)
}

// lostWhileWaiting breaks a lock of a call that waits for the next key.
func lostWhileWaiting(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(2)
	lock := e.holdKey(b, keys[1])
	w := e.waitAll(a, keys, holdfast.WithRetry(holdfast.Retry{Initial: e.engine.Lease / 100}))
	w.waitsFor(b, keys, 1)
	old := e.inspectKey(b, keys[0])
	e.breaks(b, keys[0])
	e.becomes(e.engine.Notice+e.handOver(), "a lock that is lost while another is waited for is acquired anew", func() (bool, any) {
		info := e.inspectKey(b, keys[0])
		return info.Held && info.Owner == old.Owner && (info.Token != old.Token || e.Tokenless && info.Grant != old.Grant), info
	})
	e.release(lock)
	w.servedAll("AcquireAll goes on after a loss")

	lock = e.holdKey(b, keys[1])
	w = e.waitAll(a, keys, holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
	w.waitsFor(b, keys, 1)
	e.breaks(b, keys[0])
	const rule = "AcquireAll fails with the loss when its Retry ends"
	err := w.fails(e.engine.Notice+e.engine.Soon, rule)
	e.brokenIf(!errors.Is(err, holdfast.ErrBroken) || errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrHeld), rule, "%v", err)
	e.release(lock)
	e.leavesNothingOf(keys, e.handOver(), ruleAllOrNone)
}

// leaseEndsWhileWaiting has the lease of a call end that has one key and waits for another.
func leaseEndsWhileWaiting(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(2)
	lock := e.holdKey(b, keys[1])
	w := e.waitAll(a, keys)
	w.waitsFor(b, keys, 1)
	a.Cut()
	if e.NeverExpires {
		time.Sleep(e.engine.Lease)
	} else {
		e.release(e.holdWithin(e.handOver(), b, keys[0]))
	}
	a.Heal()
	e.release(lock)
	w.servedAll("AcquireAll goes on after an outage")
}

// firstEndIsTold breaks one of the locks, and releases all when that has a successor.
func firstEndIsTold(e *env) {
	const rule = "the first end of one of the locks ends them as a whole"
	a, b := e.client(), e.client()
	for i, broken := range e.keys(3) {
		locks := e.all(a, e.keys(3))
		e.breaks(b, broken)
		e.brokenIf(!e.closes(locks.Done(), e.engine.Notice), rule, "Done is open after %q was broken", broken)
		var lost *holdfast.LostError
		first := locks.Err()
		e.brokenIf(!errors.As(first, &lost) || lost.Key != broken || !errors.Is(first, holdfast.ErrBroken), rule, "Err is %v", first)
		others := slices.Delete(slices.Clone(locks.All()), i, i+1)
		for _, lock := range others {
			e.isLive(lock, "the other locks stay held until Release")
			e.isHeld(b, lock.Key(), "the other locks stay held until Release")
		}
		next := e.holdWithin(e.handOver(), b, broken)
		err := locks.Release(e.soon())
		e.failsWith(err, holdfast.ErrBroken, "Release reports what has ended before")
		e.brokenIf(locks.Err() != first, "the first end never changes", "%v became %v", first, locks.Err())
		for _, lock := range others {
			e.leavesNothing(lock.Key(), e.engine.Soon, "a release that fails does not keep the others")
		}
		e.isLive(next, ruleSpares)
		e.release(next)
	}
}
