package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var orderCases = []testCase{
	{"G7_Order", order},
	{"G7_GivingUpKeepsTheOrder", givingUpKeepsTheOrder},
	{"G7_ALostWaiterBlocksNobody", aLostWaiterBlocksNobody},
	{"G7_InspectShowsTheQueue", inspectShowsTheQueue},
	{"G7_NobodyStarves", nobodyStarves},
	{fairSharesName, fairShares},
	{"G7_AcquireAnyTakesTheFirstFree", acquireAnyTakesTheFirstFree},
	{"G7_AcquireAnyShuffles", acquireAnyShuffles},
}

// line has n clients wait, one after the other, who release at once. The result grows as they are served.
func (e *env) line(holder *Client, n int) (waiters []*waiter, served func() []int) {
	var mu sync.Mutex
	var order []int
	for i := range n {
		w := e.waitKey(e.client(), e.key, func(lock *holdfast.Lock) {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := lock.Release(e.soon()); err != nil {
				e.Errorf("%s: Release: %v", e.rule, err)
			}
		})
		waiters = append(waiters, w.waits(holder, e.key, i+1))
	}
	return waiters, func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(order)
	}
}

// inOrder insists on the order of service, if the engine promises one, or else that all are served.
func (e *env) inOrder(got, want []int) {
	if e.engine.Ordered {
		e.brokenIf(!slices.Equal(got, want), "first come, first served", "served %v, want %v", got, want)
		return
	}
	slices.Sort(got)
	e.brokenIf(!slices.Equal(got, want), "every waiter is served in the end", "served %v, want %v in any order", got, want)
}

func order(e *env) { e.serves(5) }

func givingUpKeepsTheOrder(e *env) { e.serves(5, 0, 2) }

// serves has n clients wait, of whom some give up, and insists that the others are served in order.
func (e *env) serves(n int, quits ...int) {
	a := e.client()
	lock := e.hold(a)
	waiters, served := e.line(a, n)
	for _, i := range quits {
		waiters[i].gone(holdfast.ErrHeld)
	}
	e.queued(a, e.key, n-len(quits))
	e.release(lock)
	var stayed []int
	for i, w := range waiters {
		if !slices.Contains(quits, i) {
			w.granted(e.patience(), "every waiter is served in the end; one that gave up blocks nobody")
			stayed = append(stayed, i)
		}
	}
	e.inOrder(served(), stayed)
	e.leavesNothing(e.key, e.engine.Soon, "a released key is held by nobody")
}

// compete has n clients that want the key again as soon as they have released it, until ctx ends: then clients is done. Each
// grant is noted under mu, and held for a while.
func (e *env) compete(ctx context.Context, n int, hold func(), note func(client int)) (mu *sync.Mutex, clients *sync.WaitGroup) {
	mu, clients = new(sync.Mutex), new(sync.WaitGroup)
	for i := range n {
		c := e.client()
		clients.Go(func() {
			for {
				lock, err := c.Acquire(ctx, e.key)
				if err != nil {
					if ctx.Err() == nil {
						e.Errorf("%s: Acquire: %v", e.rule, err)
					}
					return
				}
				mu.Lock()
				note(i)
				mu.Unlock()
				hold()
				if err := lock.Release(e.soon()); err != nil {
					e.Errorf("%s: Release: %v", e.rule, err)
					return
				}
			}
		})
	}
	return mu, clients
}

// nobodyStarves has clients that want the key again as soon as they have released it.
func nobodyStarves(e *env) {
	// Where chance says who is next, a turn may be long in coming: the time for it is one in which none comes only if none ever does.
	const (
		turns    = 2 // of each, after which others have had theirs
		patience = 8
	)
	had := make([]int, 3)
	last := -1
	grants := 0
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	mu, clients := e.compete(ctx, len(had), e.settle, func(i int) {
		if grants++; last != i {
			had[i]++
			last = i
		}
	})
	served := e.eventually(patience*e.patience(), func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Min(had) >= turns
	})
	stop()
	clients.Wait()
	e.brokenIf(!served, "every waiter gets its turn, though others want the key again and again",
		"of %d grants in %v, the clients have had %v in turn, want at least %d each", grants, patience*e.patience(), had, turns)
	e.leavesNothing(e.key, e.engine.Soon, "a released key is held by nobody")
}

func aLostWaiterBlocksNobody(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	lock := e.hold(a)
	lost := e.wait(b).waits(a, e.key, 1)
	next := e.wait(c).waits(a, e.key, 2)
	b.Cut()
	if b.Expire != nil {
		b.Expire()
	}
	e.release(lock)
	e.release(next.granted(e.handOver(), "a waiter whose session ended blocks nobody"))
	lost.stillWaits("a waiter that is cut off goes on waiting")
	b.Heal()
	e.release(lost.granted(e.patience(), "a waiter whose session ended joins the queue again"))
	e.leavesNothing(e.key, e.handOver(), ruleNothing)
}

func inspectShowsTheQueue(e *env) {
	a := e.client()
	lock := e.hold(a, holdfast.WithOwner("holder"))
	if !e.engine.Ordered {
		info, err := a.Inspect(e.soon(), e.key)
		e.brokenIf(err != nil || len(info.Queue) != 0, "an engine without order shows no queue", "%+v, %v", info.Queue, err)
		return
	}
	var want []string
	for i := range 3 {
		want = append(want, fmt.Sprint("owner", i))
		e.wait(e.client(), holdfast.WithOwner(want[i]), holdfast.WithData([]byte(want[i]))).waits(a, e.key, i+1)
	}
	got := e.queued(a, e.key, 3)
	e.brokenIf(!slices.Equal(got, want), "Inspect says who waits, the next one first", "%q, want %q", got, want)
	for info, err := range a.List(e.soon(), e.key) {
		e.brokenIf(err != nil || info.Owner != "holder" || len(info.Queue) != 3, "List and Inspect agree", "%+v, %v", info, err)
	}
	e.release(lock)
}

func acquireAnyTakesTheFirstFree(e *env) {
	const rule = "AcquireAny takes the first free key in the order given"
	a, b := e.client(), e.client()
	keys := e.keys(4)
	first := e.holdKey(a, keys[0])
	for _, want := range keys[1:] {
		lock, err := b.AcquireAny(e.soon(), keys)
		e.brokenIf(err != nil || lock.Key() != want, rule, "%v, %v; want %q", lock, err, want)
		e.isHeld(a, want, ruleOne)
	}
	if lock, err := b.AcquireAny(e.soon(), keys); !errors.Is(err, holdfast.ErrHeld) {
		e.broken(rule, "with all keys held: %v, %v", lock, err)
	}
	time.AfterFunc(e.engine.Lease/10, func() { first.Release(e.within(e.engine.Soon)) })
	lock, err := b.AcquireAny(e.within(e.patience()), keys, holdfast.WithWait(e.patience()))
	e.brokenIf(err != nil || lock.Key() != keys[0], "AcquireAny makes further passes while WithWait lasts", "%v, %v", lock, err)
}

func acquireAnyShuffles(e *env) {
	a := e.client()
	keys := e.keys(8)
	seen := make(map[string]bool)
	for range 40 { // the odds of a single key are 1 to 8^39
		lock, err := a.AcquireAny(e.soon(), keys, holdfast.WithRandomOrder())
		e.noError(err, "AcquireAny takes a free key")
		seen[lock.Key()] = true
		e.release(lock)
		if len(seen) > 1 {
			return
		}
	}
	e.broken("AcquireAny shuffles if asked to", "it took the same one of %d free keys 40 times", len(keys))
}
