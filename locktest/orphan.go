package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

var orphanCases = []testCase{
	{"G6_CutDuringAcquireAndRelease", cutDuringAcquireAndRelease},
	{"G6_GiveUpDuringCut", giveUpDuringCut},
}

// moments are delays after which a cut may hit a request or its reply; with -1 it comes before the call.
var moments = []time.Duration{
	-1, 0, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond,
}

const ruleRetries = "Release retries until the engine has confirmed it"

// owns insists that the engine and the holder of a lock agree.
func (e *env) owns(lock *holdfast.Lock, probe *Client) {
	const rule = "the engine has the grant that Acquire returns, once"
	e.noError(lock.Verify(e.within(e.patience())), rule, "Verify")
	// What came of a request that was repeated may be on its way out.
	e.becomes(e.patience(), "no client waits behind its own grant", func() (bool, any) {
		info, n := e.inspect(probe), 0
		for grant := range info.Each() {
			if grant.Token == lock.Token() && grant.Owner == lock.Owner() {
				n++
			}
		}
		e.brokenIf(n != 1, rule, "token %v of %q; Inspect: %+v", lock.Token(), lock.Owner(), info)
		return len(info.Queue) == 0, info.Queue
	})
}

// cutDuringAcquireAndRelease has another client share the key all the time, if the mode allows that.
func cutDuringAcquireAndRelease(e *env) {
	a, b := e.client(), e.client()
	for _, m := range e.modes() {
		var stays []*holdfast.Lock
		if m != "w" {
			stays = append(stays, e.hold(b, m.option()))
		}
		for i, delay := range moments {
			if delay < 0 {
				a.Cut()
			}
			w := e.wait(a, m.option())
			e.cutFor(a, delay)
			lock := w.granted(e.patience(), "a request whose reply was lost still ends in a grant")
			if i%2 == 0 {
				e.owns(lock, b)
			}
			released := later(func() error { return lock.Release(e.within(e.patience())) })
			e.cutFor(a, delay)
			e.mayFail(e.result(released, e.patience(), ruleRetries), holdfast.ErrLost, ruleRetries)
			if m == "w" {
				e.leavesNothing(e.key, e.handOver(), "a lost reply leaves nothing behind")
				continue
			}
			e.becomes(e.handOver(), "a lost reply leaves nothing behind", func() (bool, any) {
				info := e.inspect(b)
				return len(info.Holders) == 1 && len(info.Queue) == 0, info
			})
			e.areLive(stays, ruleOthers)
		}
		e.release(stays...)
	}
}

// cutFor cuts a client off after a delay, for a short time.
func (e *env) cutFor(a *Client, delay time.Duration) {
	time.Sleep(delay)
	a.Cut()
	time.Sleep(e.engine.Lease / 20)
	a.Heal()
}

func giveUpDuringCut(e *env) {
	a, b := e.client(), e.client()
	for _, delay := range moments {
		if delay < 0 {
			a.Cut()
		}
		ctx, cancel := context.WithCancel(e.ctx)
		result := make(chan *holdfast.Lock, 1)
		go func() {
			lock, _ := a.Acquire(ctx, e.key)
			result <- lock
		}()
		time.Sleep(delay)
		a.Cut()
		time.Sleep(time.Millisecond)
		cancel()
		lock := receive(e, result, e.engine.Soon, ruleAtOnce, "the reply was lost, and it has not returned")
		if lock != nil { // the call was faster than the cut
			err := lock.Release(e.done())
			e.brokenIf(err != nil && !errors.Is(err, holdfast.ErrReleasePending) && !errors.Is(err, holdfast.ErrLost),
				"Release is pending while the engine does not answer", "%v", err)
		}
		a.Heal()
		e.settle()
		e.leavesNothing(e.key, e.handOver(), "an acquire that was given up while its outcome was unknown leaves nothing behind")
		e.release(e.holdWithin(e.patience(), b, e.key))
	}
}

// stallCases are cases of clients that are cut off, once more: what they send meanwhile is not lost, but arrives when they are back.
var stallCases = []testCase{
	stalled("G2_HolderKnowsFirst", holderKnowsFirst),
	stalled("G5_CancelWhileDisconnected", cancelWhileDisconnected),
	stalled("G5_CancelWhileWaitingDisconnected", cancelWhileWaitingDisconnected),
	stalled("G6_CutDuringAcquireAndRelease", cutDuringAcquireAndRelease),
	stalled("G6_GiveUpDuringCut", giveUpDuringCut),
	stalled("G10_PendingWhileCut", pendingWhileCut),
	stalled("G10_LateReleaseSparesTheSuccessor", lateReleaseSparesTheSuccessor),
	stalled("G11_CloseWhileCut", closeWhileCut),
	stalled("G16_SurvivesACut", dataSurvivesACut),
	stalled("G16_NeverAfterTheEnd", dataAfterTheEnd),
	stalled("G18_NothingHalfWhileCut", nothingHalfWhileCut),
}

// stalled is a case whose clients are stalled where they are cut off otherwise.
func stalled(name string, run func(e *env)) testCase {
	return testCase{name + "_Stalled", func(e *env) {
		e.stalls = true
		run(e)
	}}
}
