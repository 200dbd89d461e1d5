package locktest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

var permitCases = sharing([]testCase{
	{"G20_NeverMoreNeverFewer", neverMoreNeverFewer},
	{"G20_AnyHolderLetsTheNextIn", anyHolderLetsTheNextIn},
	{"G20_TryIsExact", tryIsExact},
	{"G20_OtherModesExclude", otherModesExclude},
	{"G20_GivingUpKeepsThePermits", givingUpKeepsThePermits},
	{"G20_AllHoldersTold", allPermitsTold},
	{"G20_ReclaimsAPermit", reclaimsAPermit},
	{"G20_ReclaimsAnyMode", reclaimsAnyMode},
})

const (
	ruleMost  = "at most n hold a semaphore of n at a time"
	ruleFewer = "n can hold a semaphore of n at a time"
	ruleNext  = "a permit that is given back, or lost, goes to the next"
)

// permits takes n permits of a semaphore of n, which is free, and insists that there are no more.
func (e *env) permits(clients []*Client, n int) []*holdfast.Lock {
	e.Helper()
	limit := holdfast.WithLimit(n)
	var locks []*holdfast.Lock
	for i := range n {
		locks = append(locks, e.takes(clients[i%len(clients)], e.key, ruleFewer, limit))
	}
	for _, c := range clients {
		e.isHeld(c, e.key, ruleMost, limit)
	}
	e.areLive(locks, ruleFewer)
	return locks
}

// allPermits insists that n permits can be had within the patience of the case, and gives them back.
func (e *env) allPermits(clients []*Client, n int, after string) {
	e.Helper()
	var locks []*holdfast.Lock
	for i := range n {
		lock, err := clients[i%len(clients)].Acquire(e.within(e.patience()), e.key, holdfast.WithLimit(n))
		e.brokenIf(err != nil, "no permit is lost", "after %s only %d of %d could be had: %v", after, i, n, err)
		locks = append(locks, lock)
	}
	for _, c := range clients {
		e.isHeld(c, e.key, ruleMost, holdfast.WithLimit(n))
	}
	for _, lock := range locks {
		e.release(lock)
	}
}

func neverMoreNeverFewer(e *env) {
	const n, rounds = 3, 5
	clients := []*Client{e.client(), e.client()}
	for _, lock := range e.permits(clients, n) {
		e.brokenIf(!lock.Shared() || lock.Limit() != n,
			"a permit says of how many it is", "Shared %v, Limit %d", lock.Shared(), lock.Limit())
		e.release(lock)
	}
	e.mix(ruleMost, clients, 3*n, rounds, func(int, int) mode { return "3" })
	e.allPermits(clients, n, "many rounds")
}

func anyHolderLetsTheNextIn(e *env) {
	const n = 3
	clients := []*Client{e.client(), e.client(), e.client()}
	waits, probe := e.client(), e.client()
	for which := range n {
		for _, how := range []string{"release", "break", "loss"} {
			if how == "loss" && (e.engine.NeverExpires || which != 1) {
				continue
			}
			locks := e.permits(clients, n)
			w := e.wait(waits, holdfast.WithLimit(n)).waits(probe, e.key, 1)
			switch how {
			case "release":
				e.release(locks[which])
			case "break":
				for grant := range e.inspect(probe).Each() {
					if grant.Token == locks[which].Token() && grant.Owner == locks[which].Owner() {
						e.noError(probe.Break(e.soon(), grant), "Break ends the permit that it is given")
						break
					}
				}
			case "loss":
				clients[which].Cut()
			}
			next := w.granted(e.handOver()+e.engine.Lease, fmt.Sprintf("%s (%s of number %d of %d)", ruleNext, how, which+1, n))
			if locks[which].Err() == nil && how != "break" {
				e.refuted(ruleFirst, "the permit has gone to the next, and its holder believes to have it")
			}
			clients[which].Heal()
			e.release(next)
			for i, lock := range locks {
				if i != which {
					e.isLive(lock, ruleOthers)
					e.release(lock)
				}
			}
			if !e.closes(locks[which].Done(), e.engine.Notice) {
				e.broken("a permit that was broken ends", "Err: %v", locks[which].Err())
			}
			e.leavesNothing(e.key, e.patience(), ruleNothing)
		}
	}
}

// tryIsExact has more try than there are permits, all at once.
func tryIsExact(e *env) {
	const n, tries = 3, 8
	clients := []*Client{e.client(), e.client()}
	for range 4 {
		locks := make([]*holdfast.Lock, tries)
		var got atomic.Int32
		var wg sync.WaitGroup
		for i := range tries {
			wg.Go(func() {
				lock, err := clients[i%len(clients)].TryAcquire(e.soon(), e.key, holdfast.WithLimit(n))
				switch {
				case err == nil:
					locks[i] = lock
					got.Add(1)
				case !errors.Is(err, holdfast.ErrHeld):
					e.Errorf("%s: TryAcquire: %v", e.rule, err)
				}
			})
		}
		wg.Wait()
		if got := got.Load(); got != n {
			e.broken("a try succeeds if a permit is free, whoever tries at the same time, and only then",
				"%d of %d tries got one of %d permits", got, tries, n)
		}
		for _, lock := range locks {
			if lock != nil {
				e.release(lock)
			}
		}
	}
}

func givingUpKeepsThePermits(e *env) {
	const n = 2
	a, b, lost := e.client(), e.client(), e.client()
	clients := []*Client{a, b}
	for i := range 8 {
		locks := e.permits(clients, n)
		var waiting []*waiter
		for j := range 4 {
			waiting = append(waiting, e.wait(clients[j%2], holdfast.WithLimit(n)))
		}
		time.Sleep(time.Duration(i) * e.engine.Soon / 1000)
		for _, w := range waiting {
			go w.cancel(nil)
		}
		for _, lock := range locks {
			e.release(lock)
		}
		for _, w := range waiting {
			e.brokenIf(!e.closes(w.done, e.engine.Soon), ruleAtOnce, "round %d", i)
			if w.err == nil {
				e.isLive(w.lock, "a grant that Acquire returns is valid")
				e.release(w.lock)
			}
		}
		e.allPermits(clients, n, "giving up")
		e.leavesNothing(e.key, e.patience(), ruleNothing)
	}
	locks := e.permits(clients, n)
	w := e.wait(lost, holdfast.WithLimit(n)).waits(a, e.key, 1)
	lost.Cut()
	if lost.Expire != nil {
		lost.Expire()
	}
	w.gone(holdfast.ErrDisconnected, holdfast.ErrHeld)
	for _, lock := range locks {
		e.release(lock)
	}
	e.allPermits(clients, n, "the loss of a waiter")
	lost.Heal()
	e.settle()
	e.allPermits(clients, n, "the return of a waiter that had given up")
}

func allPermitsTold(e *env) {
	const n = 3
	a, b := e.client(), e.client()
	locks := e.permits([]*Client{a, b}, n)
	e.release(locks[1])
	locks[1] = locks[2]
	info := e.inspect(b)
	e.brokenIf(!info.Held || !info.Shared || info.Limit != n || len(info.Holders) != 2, ruleAll, "%+v", info)
	i := 0
	for grant := range info.Each() {
		if grant.Token != locks[i].Token() || grant.Owner != locks[i].Owner() || grant.Limit != n {
			e.broken(ruleAll, "%+v, want token %v of %q", grant, locks[i].Token(), locks[i].Owner())
		}
		i++
	}
	e.release(locks[0])
	e.release(locks[1])
}

func reclaimsAPermit(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	limit := holdfast.WithLimit(2)
	old := e.takes(a, e.key, ruleFewer, limit, holdfast.WithOwner("worker"))
	other := e.takes(c, e.key, ruleFewer, limit)
	e.watches(a)
	lock := e.hold(b, append(reclaim(), limit)...)
	e.ends(old, e.engine.Notice, ruleReclaim, holdfast.ErrReclaimed)
	e.isLive(other, ruleSpares)
	e.isHeld(c, e.key, ruleMost, limit)
	e.release(lock)
	e.release(other)
	e.allPermits([]*Client{a, b}, 2, "a reclaim")
}
