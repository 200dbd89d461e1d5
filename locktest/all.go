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
	{"G18_ReleaseGoesOn", releaseGoesOn},
	{"G18_TTLBeginsWithAll", ttlBeginsWithAll},
	{"G18_ReclaimsEach", reclaimsEach},
	{"G18_DoAllReleases", doAllReleases},
	{"G18_OnEventReportsEach", eventsOfEach},
	{"G18_BadInput", allBadInput},
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
	for _, lock := range locks.All() {
		e.isLive(lock, rule)
	}
	if err := locks.Err(); err != nil || isClosed(locks.Done()) {
		e.broken(rule, "each is live, and all together are over: %v", err)
	}
	e.noError(locks.Verify(e.soon()), rule, "Verify")
}

// releaseAll releases locks and insists on the confirmation.
func (e *env) releaseAll(locks *holdfast.Locks) {
	e.noError(locks.Release(e.soon()), "Release of live locks returns nil once the engine has confirmed")
}

// waitsFor waits until a call that acquires keys in turn has those before the one at i and waits for that.
func (e *env) waitsFor(probe *Client, keys []string, i int, over <-chan struct{}) {
	for _, key := range keys[:i] {
		if !e.eventually(e.engine.Soon, func() bool {
			info, err := probe.Inspect(e.soon(), key)
			return err == nil && info.Held
		}) {
			e.broken("AcquireAll takes key after key", "it waits for %q and does not hold %q", keys[i], key)
		}
	}
	if e.engine.Ordered {
		e.queued(probe, keys[i], 1)
	} else {
		time.Sleep(e.engine.Lease / 20)
	}
	e.brokenIf(isClosed(over), "AcquireAll waits while one of the keys is held", "it has returned")
}

// allWaiter is a call of AcquireAll on a goroutine.
type allWaiter struct {
	cancel context.CancelFunc
	done   chan struct{}
	locks  *holdfast.Locks
	err    error
}

func (e *env) waitAll(c *Client, keys []string, opts ...holdfast.Option) *allWaiter {
	ctx, cancel := context.WithCancel(e.ctx)
	w := &allWaiter{cancel: cancel, done: make(chan struct{})}
	e.Cleanup(func() {
		cancel()
		e.closes(w.done, e.patience())
	})
	go func() {
		defer close(w.done)
		w.locks, w.err = c.AcquireAll(ctx, keys, opts...)
	}()
	return w
}

// fails insists that the call fails within d, with an error that matches all of want.
func (w *allWaiter) fails(e *env, d time.Duration, rule string, want ...error) {
	e.brokenIf(!e.closes(w.done, d), rule, "it has not returned after %v", d)
	for _, want := range want {
		e.brokenIf(!errors.Is(w.err, want), rule, "it failed with %v, want %v", w.err, want)
	}
	e.brokenIf(w.err == nil, rule, "it succeeded")
}

// granted insists that the call succeeds within d.
func (w *allWaiter) granted(e *env, d time.Duration, rule string) *holdfast.Locks {
	e.brokenIf(!e.closes(w.done, d) || w.err != nil, rule, "after %v: %v", d, w.err)
	return w.locks
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
	for _, key := range keys {
		e.leavesNothing(key, e.engine.Soon, "Release gives every key back")
	}
}

// oppositeOrders has clients ask for the same keys in every order. The sections must not overlap.
func oppositeOrders(e *env) {
	const clients, rounds = 4, 2
	keys := e.keys(3)
	var inside [3]crowd
	var group sync.WaitGroup
	failures := make(chan error, clients*rounds)
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
				failures <- err
			}
		})
	}
	group.Wait()
	for range clients * rounds {
		e.noError(<-failures, "calls that ask for the same keys in any order are all served, one at a time")
	}
	for _, key := range keys {
		e.leavesNothing(key, e.engine.Soon, ruleNothing)
	}
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
			var opts []holdfast.Option
			if way == "wait" {
				opts = append(opts, holdfast.WithWait(e.engine.Lease/5))
			}
			w := e.waitAll(a, []string{keys[1], keys[2], keys[0]}, opts...)
			switch way {
			case "ctx":
				e.waitsFor(b, keys, i, w.done)
				w.cancel()
				w.fails(e, e.engine.Soon, ruleAtOnce, context.Canceled)
				e.brokenIf(!errors.Is(w.err, holdfast.ErrHeld) && !errors.Is(w.err, holdfast.ErrDisconnected),
					ruleSays, "%v", w.err)
			case "wait":
				w.fails(e, e.engine.Lease/5+e.engine.Soon, "WithWait bounds the wait")
				var held *holdfast.HeldError
				if errors.Is(w.err, holdfast.ErrDisconnected) {
					break // a real engine may not have answered yet
				}
				e.brokenIf(!errors.As(w.err, &held) || held.Key != keys[i] || held.Holder.Token != lock.Token() || errors.Is(w.err, context.DeadlineExceeded),
					"when WithWait elapses, AcquireAll fails with a HeldError that names the holder", "%v", w.err)
			case "Close":
				e.waitsFor(b, keys, i, w.done)
				e.close(a)
				w.fails(e, e.engine.Soon, "Close ends every call that waits", holdfast.ErrClosed)
			}
			e.isLive(lock, ruleOne)
			e.release(lock)
			for _, key := range keys {
				e.leavesNothing(key, e.engine.Soon, ruleAllOrNone)
			}
		}
	}
}

// nothingHalfWhileCut ends a call that holds a key and cannot reach the engine: it returns at once all the same.
func nothingHalfWhileCut(e *env) {
	a, b := e.client(), e.client()
	keys := e.keys(2)
	lock := e.holdKey(b, keys[1])
	w := e.waitAll(a, keys)
	e.waitsFor(b, keys, 1, w.done)
	a.Cut()
	time.Sleep(e.engine.Lease / 20)
	w.cancel()
	w.fails(e, e.engine.Soon, ruleAtOnce, context.Canceled)
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
	w.fails(e, wait+e.engine.Soon, "WithWait bounds the wait for all keys")
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
		for _, key := range keys {
			e.leavesNothing(key, e.engine.Soon, "a TryAcquireAll that fails gives back everything")
		}
	}
	locks, err := a.TryAcquireAll(e.soon(), keys)
	e.noError(err, "TryAcquireAll takes keys that are free")
	e.allLive(locks, ruleAllLive)
	e.releaseAll(locks)
}
