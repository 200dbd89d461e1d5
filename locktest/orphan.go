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
	{"G6_WhatIsReturnedIsHeld", whatIsReturnedIsHeld},
}

// moments are delays after which a cut may hit a request, or its reply, on the
// way; a negative one has the cut come before the call.
var moments = []time.Duration{
	-1, 0, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond,
}

// owns insists that the engine and the holder of a lock say the same.
func (e *env) owns(lock *holdfast.Lock, probe *Client) {
	e.Helper()
	const rule = "what Acquire returns is what the engine has"
	if err := lock.Verify(e.within(e.patience())); err != nil {
		e.broken(rule, "Verify: %v", err)
	}
	info, err := probe.Inspect(e.soon(), lock.Key())
	if err != nil || !info.Held || info.Token != lock.Token() || info.Owner != lock.Owner() {
		e.broken(rule, "token %v of %q; Inspect: %+v, %v", lock.Token(), lock.Owner(), info, err)
	}
	if len(info.Queue) != 0 {
		e.broken("a client never waits for itself", "behind its own grant waits %+v", info.Queue)
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
		lock := w.granted(e.patience(), "a request whose reply was lost ends in a grant all the same")
		if i%2 == 0 {
			e.owns(lock, probe)
		}
		if err := lock.Release(e.within(e.patience())); err != nil && !errors.Is(err, holdfast.ErrLost) {
			e.broken("Release goes on until the engine has confirmed it", "%v", err)
		}
		e.leavesNothing(e.key, e.handOver(), "a lost reply leaves no grant that nobody knows of")
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
		select {
		case err := <-released:
			if err != nil && !errors.Is(err, holdfast.ErrLost) {
				e.broken("Release goes on until the engine has confirmed it", "%v", err)
			}
		case <-time.After(e.patience()):
			e.broken("Release goes on until the engine has confirmed it", "it has not returned")
		}
		e.leavesNothing(e.key, e.handOver(), "a lost reply to a release leaves nothing")
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
		var lock *holdfast.Lock
		select {
		case lock = <-result:
		case <-time.After(e.engine.Soon):
			e.broken(ruleAtOnce, "while the reply was lost")
		}
		if lock != nil { // it was faster than the cut
			pending, stop := context.WithCancel(e.ctx)
			stop()
			if err := lock.Release(pending); err != nil && !errors.Is(err, holdfast.ErrReleasePending) && !errors.Is(err, holdfast.ErrLost) {
				e.broken("Release while the engine does not answer is pending", "%v", err)
			}
		}
		a.Heal()
		e.settle()
		e.leavesNothing(e.key, e.handOver(), "an acquire that was given up while its outcome was unknown leaves nothing")
		e.release(e.holdWithin(e.patience(), b, e.key))
	}
}

func whatIsReturnedIsHeld(e *env) {
	a, b := e.client(), e.client()
	for range 5 {
		lock := e.hold(a)
		e.owns(lock, b)
		e.isHeld(b, e.key, "what Acquire returns is what the engine has")
		e.release(lock)
		if info, err := b.Inspect(e.soon(), e.key); err != nil || info.Held {
			e.broken("what Release confirms is done", "Inspect: %+v, %v", info, err)
		}
	}
}
