package locktest

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
)

var reclaimCases = []testCase{
	{"G13_ReclaimsAtOnce", reclaimsAtOnce},
	{"G13_ReclaimsFromTheDead", reclaimsFromTheDead},
	{"G13_ReclaimsPlaces", reclaimsPlaces},
	{"G13_TakesItsTurn", takesItsTurn},
	{"G13_SparesOthers", sparesOthers},
}

const ruleReclaim = "WithReclaim ends the holds of other clients under the same owner name"

func reclaim() []holdfast.Option {
	return []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithReclaim()}
}

// reclaimsAtOnce asks for the key in the mode of the previous incarnation, or another, and reclaims each of its holds.
func reclaimsAtOnce(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	changes := [][2]mode{{"w", "w"}}
	if e.Shares {
		changes = append(changes, [][2]mode{{"r", "r"}, {"2", "2"}, {"w", "1"}, {"r", "2"}, {"1", "3"}, {"2", "w"}, {"3", "r"}}...)
	}
	for _, change := range changes {
		have, want := change[0], change[1]
		var strangers, old []*holdfast.Lock
		if want.mayHold(have) {
			strangers = append(strangers, e.hold(c, have.option()))
		}
		for n := map[mode]int{"r": 12}[have]; len(old) < max(1, n); {
			old = append(old, e.hold(a, have.option(), holdfast.WithOwner("worker")))
		}
		e.watches(a)
		lock := e.hold(b, append(reclaim(), want.option())...)
		causes := []error{holdfast.ErrReclaimed}
		if have != want {
			causes = append(causes, holdfast.ErrBroken)
		}
		for _, k := range old {
			e.ends(k, e.engine.Notice, ruleReclaim, causes...)
		}
		e.newer(lock.Token(), old[0].Token(), "the next grant has a greater token")
		e.areLive(append(strangers, lock), ruleSpares)
		if have == "2" && want == "2" {
			e.isHeld(c, e.key, ruleMost, want.option())
		}
		e.release(append(strangers, lock)...)
	}
	e.release(e.takes(a, e.key, "WithReclaim takes a free key like any other call", reclaim()...))
}

// reclaimsFromTheDead is what WithReclaim is for: the holder is silent, and its lease runs for long.
func reclaimsFromTheDead(e *env) {
	a, b := e.client(), e.client()
	old := e.hold(a, holdfast.WithOwner("worker"))
	a.Cut()
	lock, err := b.TryAcquire(e.within(e.engine.Lease/2), e.key, reclaim()...)
	e.noError(err, ruleReclaim+", without waiting for a dead lease")
	if e.NeverExpires {
		e.noError(old.Err(), ruleForever, "nothing has reached it, and Err is")
		a.Heal()
	}
	e.ends(old, e.handOver(), "a reclaimed lock ends by its holder's own clock, if nothing reaches the holder",
		append(expired, holdfast.ErrReclaimed)...)
	a.Heal()
	e.isLive(lock, ruleSpares)
}

func reclaimsPlaces(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	lock := e.hold(c)
	old := e.wait(a, holdfast.WithOwner("worker")).waits(c, e.key, 1)
	e.watches(a)
	young := e.wait(b, reclaim()...)
	if e.Ordered {
		err := old.fails(e.engine.Soon, "WithReclaim removes contenders under the same owner name from the queue")
		e.brokenIf(!errors.Is(err, holdfast.ErrReclaimed), "a contender that was reclaimed fails with ErrReclaimed", "%v", err)
		e.queued(c, e.key, 1)
	}
	e.release(lock)
	e.release(young.granted(e.patience(), "WithReclaim waits for other owners"))
	old.cancel(nil) // without a queue it has no place to lose and may still win
	if e.closes(old.done, e.engine.Soon) && old.err == nil {
		_ = old.lock.Release(e.soon()) // ErrReclaimed, if it won before
	}
	e.leavesNothing(e.key, e.handOver(), ruleNothing)
}

// takesItsTurn reclaims a hold that a writer waits for.
func takesItsTurn(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, m := range e.modes() {
		old := e.hold(a, m.option(), holdfast.WithOwner("worker"))
		e.watches(a)
		writer := e.wait(c).waits(c, e.key, 1)
		young := e.wait(b, append(reclaim(), m.option())...)
		causes := []error{holdfast.ErrReclaimed}
		if m != "w" {
			causes = append(causes, holdfast.ErrBroken)
		}
		e.ends(old, e.engine.Notice, ruleReclaim+", also if the request has to wait for others", causes...)
		e.inTurn(writer, young)
	}
}

// sparesOthers reclaims keys that are held under another owner name, or by the same client.
func sparesOthers(e *env) {
	const rule = "WithReclaim ends no hold under another owner name, of the same client, or of another key"
	a, b, lock := e.held(holdfast.WithOwner("worker"))
	same := e.holdKey(a, e.prefix+"another key", holdfast.WithOwner("worker"))
	_, err := a.Acquire(e.soon(), e.key, reclaim()...)
	e.brokenIf(!errors.Is(err, holdfast.ErrHeld) || errors.Is(err, context.DeadlineExceeded), rule, "Acquire: %v, want ErrHeld, at once", err)
	e.failsWith(failed(a.AcquireAny(e.soon(), []string{e.key}, reclaim()...)), holdfast.ErrHeld, rule, "AcquireAny")
	err = failed(b.TryAcquire(e.soon(), e.key, holdfast.WithOwner("worker2"), holdfast.WithReclaim()))
	e.failsWith(err, holdfast.ErrHeld, rule, "by another owner")
	e.isLive(lock, rule)
	e.release(lock)
	e.release(e.hold(a, reclaim()...))
	e.release(e.hold(b, reclaim()...))
	e.isLive(same, rule)

	stranger := e.hold(b)
	first := e.wait(a, holdfast.WithOwner("worker")).waits(b, e.key, 1)
	second := e.wait(a, reclaim()...).waits(b, e.key, 2)
	first.stillWaits("a contender of the same client is never reclaimed")
	e.release(stranger)
	if !e.Ordered {
		return // the second may find the first to be the holder, which is ErrHeld
	}
	e.release(first.granted(e.engine.Soon, "a contender of the same client is never reclaimed"))
	e.release(second.granted(e.engine.Soon, "WithReclaim takes its turn"))
}
