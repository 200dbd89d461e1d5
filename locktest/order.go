package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

var orderCases = []testCase{
	{"G7_Order", order},
	{"G7_ALostWaiterBlocksNobody", aLostWaiterBlocksNobody},
	{"G7_NobodyStarves", nobodyStarves},
	{fairSharesName, fairShares},
	{"G7_AcquireAnyTakesTheFirstFree", acquireAnyTakesTheFirstFree},
}

// order has waiters served, and then others of which some give up.
func order(e *env) {
	e.serves(5)
	e.serves(5, 0, 2)
}

// serves has n clients wait, of which some give up, and insists that the others are served: in order, if the engine promises that.
func (e *env) serves(n int, quits ...int) {
	a := e.client()
	lock := e.hold(a)
	var mu sync.Mutex
	var served []int
	var waiters []*waiter
	for i := range n {
		w := e.waitKey(e.client(), e.key, func(lock *holdfast.Lock) {
			mu.Lock()
			served = append(served, i)
			mu.Unlock()
			e.lets(lock)
		}, holdfast.WithOwner(fmt.Sprint("owner", i)))
		waiters = append(waiters, w.waits(a, e.key, i+1))
	}
	var stay []int
	var owners []string
	for i, w := range waiters {
		if slices.Contains(quits, i) {
			w.gone(holdfast.ErrHeld)
		} else {
			stay, owners = append(stay, i), append(owners, fmt.Sprint("owner", i))
		}
	}
	if !e.engine.Ordered {
		owners = nil
	}
	got := e.queued(a, e.key, len(stay))
	e.brokenIf(!slices.Equal(got, owners), "Inspect says who waits, the next one first, if there is a queue", "%q, want %q", got, owners)
	for info, err := range a.List(e.soon(), e.key) {
		e.brokenIf(err != nil || info.Owner != a.Owner() || len(info.Queue) != len(owners), "List and Inspect agree", "%+v, %v", info, err)
	}
	e.release(lock)
	for _, i := range stay {
		waiters[i].granted(e.patience(), ruleServed)
	}
	if !e.engine.Ordered {
		slices.Sort(served)
	}
	e.brokenIf(!slices.Equal(served, stay), "first come, first served, if there is a queue", "served %v, want %v", served, stay)
	e.leavesNothing(e.key, e.engine.Soon, ruleFree)
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
				if !e.lets(lock) {
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
	b.dies()
	e.release(lock)
	e.release(next.granted(e.handOver(), "a waiter whose session ended blocks nobody"))
	lost.stillWaits("a waiter that is cut off goes on waiting")
	b.Heal()
	e.release(lost.granted(e.patience(), "a waiter whose session ended joins the queue again"))
	e.leavesNothing(e.key, e.handOver(), ruleNothing)
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
	_, err := b.AcquireAny(e.soon(), keys)
	e.failsWith(err, holdfast.ErrHeld, rule)
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	_, err = b.AcquireAny(ctx, keys, holdfast.WithRetry(holdfast.Retry{Delay: func(failed int) (time.Duration, bool) {
		if failed == 10 { // it has looked at all keys by then
			cancel()
		}
		return time.Millisecond, true
	}}))
	e.brokenIf(!errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrHeld), ruleSays, "AcquireAny: %v", err)
	for _, key := range keys {
		e.queued(a, key, 0) // AcquireAny never joins a queue
	}
	time.AfterFunc(e.engine.Lease/10, func() { first.Release(e.within(e.engine.Soon)) })
	lock, err := b.AcquireAny(e.within(e.patience()), keys, holdfast.WithWait(e.patience()))
	e.brokenIf(err != nil || lock.Key() != keys[0], "AcquireAny makes further passes while WithWait lasts", "%v, %v", lock, err)
}

// fairShares has a name, since it needs more time than others.
const fairSharesName = "G7_FairShares"

// fairFor is for how many leases fairShares watches: hours, for leases as they are in use.
const fairFor = 400

// fairShares has clients that want the key again as soon as they have released it, for hours. It is only for virtual time.
func fairShares(e *env) {
	e.needs(e.engine.Bubble != nil, "let hours pass")
	ctx := e.within(fairFor * e.engine.Lease)
	had := make([]int, 3)
	var holds atomic.Int64
	hold := func() { // not in step with the polls of an engine that has some
		lengths := [...]time.Duration{17, 29, 23, 37}
		time.Sleep(e.engine.Lease * lengths[holds.Add(1)%int64(len(lengths))] / 101)
	}
	_, clients := e.compete(ctx, len(had), hold, func(i int) { had[i]++ })
	clients.Wait()
	e.brokenIf(slices.Min(had)*10 < slices.Max(had)*3,
		"in the long run, clients that want a key equally often have it so: three tenths of the most at least", "%v times", had)
	e.leavesNothing(e.key, e.engine.Soon, "a released key is held by nobody")
}
