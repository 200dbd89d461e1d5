package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

var dataCases = []testCase{
	{"G16_OthersReadIt", othersReadIt},
	{"G16_Stays", dataStays},
	{"G16_LastWins", lastWins},
	{"G16_RefusedAfterTheEnd", dataAfterTheEnd},
	{"G16_NotOverABreak", dataAfterABreak},
	{"G16_SurvivesACut", dataSurvivesACut},
}

var dataFates = fated("G16_SetData", setDataLoses)

const (
	ruleData      = "SetData replaces the data that others read"
	ruleDataAlone = "SetData changes nothing but the data"
	ruleDataOrder = "data that was set later is never replaced by what was set before"
)

// sets insists that SetData succeeds.
func (e *env) sets(lock *holdfast.Lock, data string) {
	e.noError(lock.SetData(e.soon(), []byte(data)), "SetData of a live lock succeeds", clipped(data))
}

// hasData insists that others read the data of the key.
func (e *env) hasData(c *Client, key, want, rule string) {
	info, err := c.Inspect(e.soon(), key)
	e.noError(err, ruleAnswers, "Inspect")
	e.brokenIf(!info.Held || string(info.Data) != want,
		rule, "held %t, data %q, want %q", info.Held, clipped(string(info.Data)), clipped(want))
}

func clipped(s string) string { return s[:min(len(s), 40)] }

// othersReadIt sets the data of a lock that another client waits for.
func othersReadIt(e *env) {
	a, b := e.client(), e.client()
	other := e.holdKey(a, e.prefix+"other", holdfast.WithData([]byte("other")))
	lock := e.hold(a, holdfast.WithData([]byte("first")), holdfast.WithOwner("leader"))
	w := e.wait(b, holdfast.WithData([]byte("next"))).waits(a, e.key, 1)
	before := e.told(b, e.key)
	for _, data := range []string{"second", "\x00\xff\x00", strings.Repeat("x", holdfast.MaxData), "owner\x00data", "", "again", ""} {
		e.sets(lock, data)
		e.hasData(b, e.key, data, ruleData)
		for i, after := range e.told(b, e.key) {
			e.brokenIf(!strings.Contains(after, fmt.Sprint([]byte(data))), ruleData, "%q has not %q", after, clipped(data))
			e.brokenIf(strings.Replace(after, fmt.Sprint([]byte(data)), fmt.Sprint([]byte("first")), 1) != before[i],
				ruleDataAlone, "%q, before it %q", after, before[i])
		}
	}
	e.hasData(b, other.Key(), "other", ruleDataAlone)
	e.isLive(lock, ruleDataAlone)
	w.stillWaits(ruleOne)
	e.release(lock)
	next := w.granted(e.handOver(), ruleNext)
	e.hasData(a, e.key, "next", "the next holder's data is its own")
	e.release(next)
	info := e.inspect(b)
	e.brokenIf(info.Held || len(info.Data) > 0, "data ends with the hold", "%+v", info)
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// dataStays sets data before the first heartbeat, and looks again after many.
func dataStays(e *env) {
	_, b, lock := e.held(holdfast.WithData([]byte("first")))
	e.sets(lock, "second")
	for range 4 {
		time.Sleep(e.engine.Lease / 2)
		e.hasData(b, e.key, "second", "what SetData has stored stays, whatever is sent to keep the lock alive")
	}
	e.isLive(lock, ruleDataAlone)
	e.isHeld(b, e.key, ruleOne)
	e.sets(lock, "third")
	e.hasData(b, e.key, "third", ruleData)
	e.release(lock)
	e.release(e.takes(b, e.key, "a release frees the key, whatever data was set"))
}

func lastWins(e *env) {
	_, b, lock := e.held()
	// Call after call, not waiting for the confirmation of the one before.
	const calls = 10
	done := make(chan error, calls)
	called := make(chan struct{})
	for i := range calls {
		go func() {
			called <- struct{}{}
			done <- lock.SetData(e.soon(), fmt.Appendf(nil, "%d", i))
		}()
		<-called
	}
	for range calls {
		const rule = "SetData of a live lock succeeds, also beside other calls"
		e.noError(e.result(done, e.engine.Soon, rule), rule)
	}
	info := e.inspect(b)
	e.brokenIf(len(info.Data) != 1, "of several calls of SetData, one wins", "the data is %q", clipped(string(info.Data)))
	for i := range calls {
		data := fmt.Sprintf("%d again", i)
		e.sets(lock, data)
		if i%3 == 0 {
			e.hasData(b, e.key, data, "what SetData has confirmed, others read")
		}
	}
	e.settle()
	e.hasData(b, e.key, fmt.Sprintf("%d again", calls-1), ruleDataOrder)
	e.isLive(lock, ruleDataAlone)
}

// refusesData insists that SetData fails with the end of the lock.
func (e *env) refusesData(lock *holdfast.Lock, causes ...error) {
	err := lock.SetData(e.soon(), []byte("too late"))
	e.endedBy(lock, "SetData fails once the lock has ended", causes...)
	e.failsWith(err, lock.Err(), "SetData of a lock that has ended fails with what Err returns")
}

// dataAfterTheEnd ends locks whose data has been set, in each way.
func dataAfterTheEnd(e *env) {
	a, b := e.client(), e.client()
	old := func() *holdfast.Lock {
		lock := e.holdWithin(e.patience(), a, e.key, holdfast.WithOwner("worker"))
		e.watches(a)
		e.sets(lock, "1")
		e.sets(lock, "2")
		e.watches(a)
		return lock
	}
	refused := func(old *holdfast.Lock, causes ...error) {
		next := e.holdWithin(e.handOver(), b, e.key, holdfast.WithData([]byte("next")), holdfast.WithOwner("worker"), holdfast.WithReclaim())
		e.ends(old, e.engine.Notice, "the end of a lock has its cause, whatever data was set before", causes...)
		e.refusesData(old, causes...)
		e.hasData(b, e.key, "next", "SetData never touches the next holder's data")
		e.isLive(next, ruleSpares)
		e.release(next)
	}
	for _, end := range e.ways(a, b) {
		lock := old()
		refused(lock, end(lock))
	}
	refused(old(), holdfast.ErrReclaimed)
	if lock := old(); !e.NeverExpires {
		a.Cut()
		e.ends(lock, e.handOver(), ruleAlone, expired...)
		refused(lock, expired...) // at once, though nothing can be sent
		a.Heal()
	} else {
		e.release(lock)
	}
	lock := old()
	e.close(a)
	refused(lock, holdfast.ErrReleased)
}

// dataAfterABreak sets data before the holder has heard that its lock was broken.
func dataAfterABreak(e *env) {
	a, b, lock := e.held(holdfast.WithData([]byte("old")))
	e.watches(a)
	a.Cut()
	e.breaks(b, e.key)
	a.Heal()
	err := lock.SetData(e.soon(), []byte("too late"))
	e.brokenIf(err == nil, "SetData is conditional on the grant", "it returned nil after a break; Err: %v", lock.Err())
	e.ends(lock, e.engine.Notice+e.engine.Soon, "SetData that finds its lock broken ends it", holdfast.ErrBroken)
	e.brokenIf(!errors.Is(err, lock.Err()), "SetData of a lock that has ended fails with what Err returns", "%v, want %v", err, lock.Err())
	next := e.holdWithin(e.handOver(), b, e.key, holdfast.WithData([]byte("next")))
	e.refusesData(lock, holdfast.ErrBroken)
	e.hasData(a, e.key, "next", "SetData never touches the next holder's data")
	e.isLive(next, ruleSpares)
}

func dataSurvivesACut(e *env) {
	a, b, lock := e.held(holdfast.WithData([]byte("old")))
	a.Cut()
	ctx := e.within(e.engine.Lease / 8)
	returned := later(func() error { return lock.SetData(ctx, []byte("new")) })
	err := e.result(returned, e.engine.Lease/8+e.engine.Soon, "SetData returns when its ctx ends")
	e.brokenIf(err == nil || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected),
		"SetData that got no answer fails with the ctx's error and ErrDisconnected", "%v", err)
	e.noError(lock.Err(), "a lock lives on, whatever comes of SetData", "Err")
	a.Heal()
	info := e.inspect(b)
	e.brokenIf(!info.Held || string(info.Data) != "old" && string(info.Data) != "new",
		"after a SetData of unknown outcome, others read the old data or the new", "%q, held: %t", info.Data, info.Held)
	e.sets(lock, "newer")
	for range 4 {
		e.hasData(b, e.key, "newer", ruleDataOrder)
		time.Sleep(e.engine.Lease / 8)
	}
	e.isLive(lock, "a lock lives on, whatever comes of SetData")
	e.release(lock)
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// setDataLoses loses or delays each message of a SetData that gives up, and sets other data meanwhile.
func setDataLoses(e *env, fate Fate) {
	a, b := e.client(), e.client()
	e.losing(a, fate, func(what string, lose func()) {
		lock := e.holdWithin(e.patience(), a, e.key, holdfast.WithData([]byte("old")))
		lose()
		sent := time.Now()
		err := lock.SetData(e.within(e.engine.Lease/16), []byte("given up"))
		e.mayFail(err, context.DeadlineExceeded, "SetData fails with the end of its ctx only")
		a.Lose(nil)
		e.noError(lock.SetData(e.within(e.patience()), []byte("new")), "SetData of a live lock succeeds", what)
		e.hasData(b, e.key, "new", "what SetData has confirmed, others read")
		e.arrived(sent, fate)
		e.hasData(b, e.key, "new", ruleDataOrder+" ("+what+")")
		e.isLive(lock, "a lock lives on, whatever comes of SetData")
		e.releaseInTime(lock, what)
	})
}
