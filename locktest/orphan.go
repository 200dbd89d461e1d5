package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

var orphanCases = []testCase{
	{"G6_CutDuringAcquire", cutDuringAcquire},
	{"G6_CutDuringRelease", cutDuringRelease},
	{"G6_GiveUpDuringCut", giveUpDuringCut},
}

// moments are delays after which a cut may hit a request or its reply; with -1 it comes before the call.
var moments = []time.Duration{
	-1, 0, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond,
}

const ruleRetries = "Release retries until the engine has confirmed it"

// owns insists that the engine and the holder of a lock agree.
func (e *env) owns(lock *holdfast.Lock, probe *Client) {
	e.Helper()
	const rule = "the engine has the grant that Acquire returns"
	e.noError(lock.Verify(e.within(e.patience())), rule, "Verify")
	var queue []holdfast.Waiter
	// What came of a request that was repeated may be on its way out.
	if !e.eventually(e.patience(), func() bool {
		info, err := probe.Inspect(e.soon(), lock.Key())
		e.brokenIf(err != nil || !info.Held || info.Token != lock.Token() || info.Owner != lock.Owner(),
			rule, "token %v of %q; Inspect: %+v, %v", lock.Token(), lock.Owner(), info, err)
		queue = info.Queue
		return len(queue) == 0
	}) {
		e.broken("no client waits behind its own grant", "%+v does", queue)
	}
}

func cutDuringAcquire(e *env) {
	a, probe := e.client(), e.client()
	for i, delay := range moments {
		if delay < 0 {
			a.Cut()
		}
		w := e.wait(a)
		time.Sleep(delay)
		a.Cut()
		time.Sleep(e.engine.Lease / 20)
		a.Heal()
		lock := w.granted(e.patience(), "a request whose reply was lost still ends in a grant")
		if i%2 == 0 {
			e.owns(lock, probe)
		}
		e.mayFail(lock.Release(e.within(e.patience())), holdfast.ErrLost, ruleRetries)
		e.leavesNothing(e.key, e.handOver(), "a lost reply leaves no grant without a holder")
	}
}

func cutDuringRelease(e *env) {
	a := e.client()
	for _, delay := range moments {
		lock := e.holdWithin(e.patience(), a, e.key)
		released := make(chan error, 1)
		go func() { released <- lock.Release(e.within(e.patience())) }()
		time.Sleep(delay)
		a.Cut()
		time.Sleep(e.engine.Lease / 20)
		a.Heal()
		e.mayFail(receive(e, released, e.patience(), ruleRetries, "it has not returned"), holdfast.ErrLost, ruleRetries)
		e.leavesNothing(e.key, e.handOver(), "a lost reply to a release leaves nothing behind")
	}
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
		if lock := receive(e, result, e.engine.Soon, ruleAtOnce, "the reply was lost, and it has not returned"); lock != nil { // the call was faster than the cut
			pending, stop := context.WithCancel(e.ctx)
			stop()
			if err := lock.Release(pending); err != nil && !errors.Is(err, holdfast.ErrReleasePending) && !errors.Is(err, holdfast.ErrLost) {
				e.broken("Release is pending while the engine does not answer", "%v", err)
			}
		}
		a.Heal()
		e.settle()
		e.leavesNothing(e.key, e.handOver(), "an acquire that was given up while its outcome was unknown leaves nothing behind")
		e.release(e.holdWithin(e.patience(), b, e.key))
	}
}
