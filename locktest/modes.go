package locktest

import (
	"strconv"
	"strings"
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
func (m mode) mayHold(ahead []*turn) bool {
	for _, t := range ahead {
		if m == "w" || t.mode != m {
			return false
		}
	}
	return m.limit() == 0 || len(ahead) < m.limit()
}

// A turn is a holder or a waiter in the queue of the key.
type turn struct {
	mode
	quits string // "!": it gives up at once; "?": it gives up when it is the first that waits
	w     *waiter
	lock  *holdfast.Lock // nil while it waits
}

// inTurn has requests wait behind a lock, in the order of the modes in queue, and releases each grant. A mode with "!" or "?" gives up: see
// turn.
func (e *env) inTurn(queue string) {
	e.Helper()
	probe := e.client()
	line := []*turn{{mode: "w", lock: e.hold(probe)}}
	for i, word := range strings.Fields(queue) {
		t := &turn{mode: mode(strings.TrimRight(word, "!?"))}
		t.quits = word[len(t.mode):]
		t.w = e.wait(e.client(), t.option()).waits(probe, e.key, i+1)
		line = append(line, t)
	}
	if !e.engine.Ordered {
		e.inAnyTurn(line)
		return
	}
	for i, w := range e.inspect(probe).Queue {
		if got := modeOf(w.Shared, w.Limit); got != line[i+1].mode {
			e.broken("Inspect gives the mode that each waiter wants", "number %d: %s, want %s", i+1, got, line[i+1].mode)
		}
	}
	for i := len(line) - 1; i >= 0; i-- {
		if line[i].quits == "!" {
			line[i].w.gone(holdfast.ErrHeld)
			line = append(line[:i], line[i+1:]...)
		}
	}
	for len(line) > 0 {
		e.settle()
		waits := len(line) // the index of the first that waits
		for i, t := range line {
			if !t.mayHold(line[:i]) {
				t.w.stillWaits(ruleModes)
				waits = min(waits, i)
				continue
			}
			if t.lock == nil {
				t.lock = t.w.granted(e.handOver(), ruleModes+", and for no other")
			}
			e.isLive(t.lock, ruleOthers)
		}
		leaves := waits - 1 // the newest holder
		if waits < len(line) && line[waits].quits == "?" {
			leaves = waits
			line[leaves].w.gone(holdfast.ErrHeld)
		} else {
			e.release(line[leaves].lock)
		}
		line = append(line[:leaves], line[leaves+1:]...)
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// inAnyTurn ends a lock that the rest of a line waits for, on an engine without a queue.
func (e *env) inAnyTurn(line []*turn) {
	e.Helper()
	var inside crowd
	var served sync.WaitGroup
	for _, t := range line[1:] {
		if t.quits != "" {
			t.w.gone(holdfast.ErrHeld)
			continue
		}
		served.Go(func() {
			if !e.closes(t.w.done, time.Duration(len(line))*e.patience()) || t.w.err != nil {
				return
			}
			leave := inside.enter(e, ruleModes, t.w.lock)
			time.Sleep(e.engine.Lease / 100)
			leave()
			if err := t.w.lock.Release(e.soon()); err != nil {
				e.Errorf("%s: Release: %v", e.rule, err)
			}
		})
	}
	e.release(line[0].lock)
	served.Wait()
	for _, t := range line[1:] {
		if t.quits == "" {
			t.w.granted(0, ruleServed)
		}
	}
	e.leavesNothing(e.key, e.patience(), ruleNothing)
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
	if got := int(grants.Load()); got != workers*rounds && !e.Failed() {
		e.broken(ruleServed, "%d grants, want %d", got, workers*rounds)
	}
	e.leavesNothing(e.key, e.patience(), ruleNothing)
	return inside.most
}

// otherModesExclude tries each mode while each mode is held.
func otherModesExclude(e *env) {
	a, b := e.client(), e.client()
	for _, have := range allModes {
		lock := e.hold(a, have.option())
		for _, want := range allModes {
			if want.mayHold([]*turn{{mode: have}}) {
				e.release(e.takes(b, e.key, ruleFewer, want.option()))
				continue
			}
			held := e.isHeld(b, e.key, ruleModes, want.option()).Holder
			if got := modeOf(held.Shared, held.Limit); got != have {
				e.broken("a HeldError has the mode of the holders", "a try of %s beside %s was told of %s", want, have, got)
			}
		}
		e.isLive(lock, "a refused try changes nothing")
		e.release(lock)
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

func mixedModes(e *env) {
	clients := []*Client{e.client(), e.client()}
	e.mix(ruleModes, clients, 6, 5, func(worker, round int) mode { return allModes[(worker+worker/2+round)%len(allModes)] })
	e.allPermits(clients, 3, "many rounds")
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
