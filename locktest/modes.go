package locktest

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	ruleModes  = "a request waits for every earlier request that does not share with it"
	ruleServed = "every waiter is served in the end"
)

// A mode is what a request asks for: "w" is a lock (of a writer), "r" is a reader's, and a number n is a permit of n.
type mode string

var allModes = []mode{"w", "r", "1", "2", "3"}

// limit is n for a permit of n, else 0.
func (m mode) limit() int {
	n, _ := strconv.Atoi(string(m))
	return n
}

func (m mode) option() holdfast.Option {
	switch {
	case m == "w":
		return nil
	case m == "r":
		return holdfast.WithShared()
	}
	return holdfast.WithLimit(m.limit())
}

// modeOf is the mode of a grant or a waiter.
func modeOf(shared bool, limit int) mode {
	switch {
	case limit > 0:
		return mode(strconv.Itoa(limit))
	case shared:
		return "r"
	}
	return "w"
}

// mayHold is the rule by which the suite judges engines: whether a request holds the key behind those ahead of it.
func (m mode) mayHold(ahead ...mode) bool {
	for _, other := range ahead {
		if m == "w" || other != m {
			return false
		}
	}
	return m.limit() == 0 || len(ahead) < m.limit()
}

// mix has workers acquire and release the key in many rounds, each time in the mode that choose returns, and checks which locks are live
// together. It returns the greatest number of them.
func (e *env) mix(rule string, clients []*Client, workers, rounds int, choose func(worker, round int) mode) (together int) {
	e.Helper()
	var grants atomic.Int32
	var inside crowd
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for round := range rounds {
				c := clients[i%len(clients)]
				lock, err := c.Acquire(e.within(time.Duration(workers)*e.patience()), e.key, choose(i, round).option())
				if err != nil {
					e.Errorf("%s: Acquire: %v", e.rule, err)
					return
				}
				leave := inside.enter(e, rule, lock)
				grants.Add(1)
				time.Sleep(time.Millisecond)
				leave()
				if err := lock.Release(e.soon()); err != nil {
					e.Errorf("%s: Release: %v", e.rule, err)
					return
				}
			}
		})
	}
	wg.Wait()
	got := int(grants.Load())
	e.brokenIf(got != workers*rounds && !e.Failed(), ruleServed, "%d grants, want %d", got, workers*rounds)
	e.leavesNothing(e.key, e.patience(), ruleNothing)
	return inside.most
}

// otherModesExclude tries each mode while each mode is held.
func otherModesExclude(e *env) {
	a, b := e.client(), e.client()
	for _, have := range allModes {
		lock := e.hold(a, have.option())
		for _, want := range allModes {
			if want.mayHold(have) {
				e.release(e.takes(b, e.key, ruleFewer, want.option()))
				continue
			}
			held := e.isHeld(b, e.key, ruleModes, want.option()).Holder
			got := modeOf(held.Shared, held.Limit)
			e.brokenIf(got != have,
				"a HeldError has the mode of the holders", "a try of %s beside %s was told of %s", want, have, got)
		}
		e.isLive(lock, "a refused try changes nothing")
		e.release(lock)
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// reclaimsAnyMode asks for the key in another mode than the previous incarnation, and reclaims it.
func reclaimsAnyMode(e *env) {
	a, b := e.client(), e.client()
	for i, have := range allModes {
		old := e.hold(a, have.option(), holdfast.WithOwner("worker"))
		e.watches(a)
		want := allModes[(i+2)%len(allModes)]
		lock := e.hold(b, append(reclaim(), want.option())...)
		e.ends(old, e.engine.Notice, ruleReclaim, holdfast.ErrReclaimed, holdfast.ErrBroken)
		e.newer(lock.Token(), old.Token(), "the next grant has a greater token")
		e.release(lock)
	}
}
