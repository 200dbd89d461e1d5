package locktest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

var permitCases = sharing([]testCase{
	{"G20_NeverMoreNeverFewer", neverMoreNeverFewer},
	{"G20_AnyHolderLetsTheNextIn", anyHolderLetsTheNextIn},
	{"G20_TryIsExact", tryIsExact},
	{"G20_OtherModesExclude", otherModesExclude},
})

func neverMoreNeverFewer(e *env) {
	e.mix(ruleMost, 9, 5, func(int, int) mode { return "3" })
	e.all3(e.client(), e.client())
}

// all3 insists that all permits of 3 can be had in the end, and gives them back.
func (e *env) all3(clients ...*Client) {
	var locks []*holdfast.Lock
	for i := range 3 {
		locks = append(locks, e.holdWithin(e.patience(), clients[i%len(clients)], e.key, holdfast.WithLimit(3)))
	}
	for _, c := range clients {
		e.isHeld(c, e.key, ruleMost, holdfast.WithLimit(3))
	}
	e.release(locks...)
}

func anyHolderLetsTheNextIn(e *env) {
	clients, waits, probe := e.clients(3), e.client(), e.client()
	for which := range 3 {
		for _, how := range []string{"release", "break", "loss"} {
			if how == "loss" && (e.engine.NeverExpires || which != 1) {
				continue
			}
			locks := e.share("3", clients)
			w := e.wait(waits, holdfast.WithLimit(3)).waits(probe, e.key, 1)
			switch how {
			case "release":
				e.release(locks[which])
			case "break":
				e.noError(probe.Break(e.soon(), e.grantOf(probe, locks[which])), "Break ends the permit that it is given")
			case "loss":
				clients[which].Cut()
			}
			next := w.granted(e.handOver()+e.engine.Lease, fmt.Sprintf("%s (%s of number %d of 3)", ruleNext, how, which+1))
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
			e.brokenIf(!e.closes(locks[which].Done(), e.engine.Notice), "a permit that was broken ends", "it has not")
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
		had := got.Load()
		e.brokenIf(had != n, "a try succeeds if a permit is free, even if others try at the same time, and only then",
			"%d of %d tries got one of %d permits", had, tries, n)
		for _, lock := range locks {
			if lock != nil {
				e.release(lock)
			}
		}
	}
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
			e.brokenIf(got != have, "a HeldError has the mode of the holders", "a try of %s beside %s was told of %s", want, have, got)
		}
		e.isLive(lock, "a refused try changes nothing")
		e.release(lock)
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}
