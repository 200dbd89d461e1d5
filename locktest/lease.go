package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

var leaseCases = []testCase{
	{"G2_RenewedWhileHeld", renewedWhileHeld},
	{"G2_HolderKnowsFirst", holderKnowsFirst},
	{"G2_DeadlineIsKept", deadlineIsKept},
	{"G2_SessionThatExpired", sessionThatExpired},
	{"G2_EveryMethodLooksAtTheClock", everyMethodLooksAtTheClock},
	{"G2_ShortSilenceKeepsTheLock", shortSilenceKeepsTheLock},
	{"G2_PausePastTheDeadline", pausePastTheDeadline},
	{"G2_ClockJumpForward", clockJumpForward},
	{"G2_ClockJumpBackward", clockJumpBackward},
	{"G2_SuspendIsNoticed", suspendIsNoticed},
	{"G2_VerifyAsksTheEngine", verifyAsksTheEngine},
	{"G2_DoEndsWithTheLock", doEndsWithTheLock},
}

const (
	ruleRenewed = "the client renews its lease while the engine can be reached, and keeps the key, however long others wait"
	ruleExpires = "the key of a client that is cut off goes to the next when its lease has passed"
	ruleFirst   = "the holder knows that its lease is over before anyone else gets the key"
	ruleAlone   = "a lease ends on the holder's own clock, with no reply from the engine"
)

// renewedWhileHeld holds a lock for two leases, although the ctx of its Acquire has ended and others wait and try.
func renewedWhileHeld(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	ctx, cancel := context.WithCancel(e.ctx)
	lock, err := a.Acquire(ctx, e.key)
	cancel()
	e.noError(err, ruleFree)
	w := e.wait(b).waits(a, e.key, 1)
	first, token := lock.Deadline(), lock.Token()
	for range 8 {
		time.Sleep(e.engine.Lease / 4)
		e.isLive(lock, ruleRenewed)
		e.isHeld(c, e.key, ruleRenewed)
		w.stillWaits(ruleRenewed)
		left := time.Until(lock.Deadline())
		e.brokenIf(left <= 0 || (left > e.engine.Lease) != e.NeverExpires,
			"Deadline is at most a lease from now, or far away if there is no lease", "it is %v from now", left)
	}
	e.brokenIf(!e.NeverExpires && !lock.Deadline().After(first), ruleRenewed, "Deadline has not moved from %v", first)
	e.noError(lock.Extend(time.Hour), "a live lock can be extended")
	info := e.inspect(c)
	e.brokenIf(info.Token != token || lock.Token() != token, "renewing and extending never change the token",
		"granted %v; Token says %v, Inspect %v", token, lock.Token(), info.Token)
	e.release(lock)
	e.release(w.granted(e.handOver(), ruleNext))
}

// shortSilenceKeepsTheLock has a holder silent for less than a lease.
func shortSilenceKeepsTheLock(e *env) {
	a := e.client()
	lock := e.hold(a)
	short := func(silence, speak func()) {
		for range 3 {
			silence()
			time.Sleep(e.engine.Lease / 8)
			speak()
			e.noError(lock.Verify(e.within(e.engine.Lease)), "a silence that is shorter than the lease costs nothing", "Verify")
		}
		time.Sleep(e.engine.Lease)
		e.isLive(lock, ruleRenewed)
	}
	short(a.Cut, a.Heal)
	if a.Pause != nil {
		short(a.Pause, a.Resume)
	}
}

// holderKnowsFirst has a client wait for the key of a client that is cut off. Where the mode allows that, another shares the key
// until then.
func holderKnowsFirst(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	if e.NeverExpires {
		e.keepsForever(a, a.Cut, a.Heal)
		return
	}
	for _, m := range e.modes() {
		lock := e.holdWithin(e.patience(), a, e.key, m.option())
		end := a.Cut
		if m != "w" {
			other := e.takes(c, e.key, ruleShare, m.option())
			end = func() { a.Cut(); e.release(other) }
		}
		next := e.handsOver(lock, b, end, ruleExpires, ruleFirst)
		e.endedBy(lock, ruleAlone, expired...)
		e.isLive(next, ruleOne)
		a.Heal()
		time.Sleep(e.engine.Lease / 2) // what was under way arrives
		e.isLive(next, ruleOne)
		e.release(next)
	}
}

// deadlineIsKept cuts a holder off, and then has a client try that has not looked at the key before.
func deadlineIsKept(e *env) {
	const rule = "a lock lives on while the engine cannot be reached, until its Deadline"
	a, b, lock := e.held()
	time.Sleep(e.engine.Lease / 2)
	e.isHeld(b, e.key, ruleOne)
	a.Cut()
	if e.NeverExpires {
		e.outlasts(b, lock)
		e.isHeld(e.client(), e.key, ruleForever)
		a.Heal()
		e.isLive(lock, ruleForever)
		return
	}
	time.Sleep(e.engine.Lease / 8) // replies on their way have arrived
	deadline := lock.Deadline()
	e.noError(lock.Err(), rule)
	e.ends(lock, time.Until(deadline)+e.engine.Soon, ruleAlone, expired...)
	e.brokenIf(time.Until(deadline) > 0, rule, "it ended %v before", time.Until(deadline))
	e.brokenIf(lock.Deadline().After(deadline), "the Deadline of a lock that has ended does not move", "it moved to %v", lock.Deadline())
	time.Sleep(e.engine.Lease + e.engine.Late)
	next, err := e.client().TryAcquire(e.within(e.patience()), e.key)
	e.noError(err, "a try finds that the lease of the holder has ended")
	e.isLive(next, ruleOne)
}

func sessionThatExpired(e *env) {
	a, b := e.client(), e.client()
	silence, limit := a.Cut, e.handOver()
	if a.Expire != nil {
		silence, limit = a.Expire, e.engine.Soon // the client learns of it
	}
	if e.NeverExpires {
		e.keepsForever(a, silence, a.Heal)
		return
	}
	locks := []*holdfast.Lock{e.hold(a), e.holdKey(a, e.prefix+"another")}
	silence()
	for _, lock := range locks {
		e.ends(lock, limit, "every lock of a session ends with it", expired...)
	}
	e.holdWithin(e.handOver(), b, e.key)
	a.Heal()
	e.holdWithin(e.patience(), a, e.prefix+"a third") // the client opens a new session
}

// everyMethodLooksAtTheClock pauses a client for each method: the first call ends all locks of a session.
func everyMethodLooksAtTheClock(e *env) {
	a := e.client()
	e.needs(a.Pause != nil, "pause a client")
	if e.NeverExpires {
		e.keepsForever(a, a.Pause, a.Resume)
		return
	}
	ended := func(k *holdfast.Lock, over bool) error {
		if over {
			return k.Err()
		}
		return nil
	}
	methods := map[string]func(*holdfast.Lock) error{
		"Err":     func(k *holdfast.Lock) error { return k.Err() },
		"Done":    func(k *holdfast.Lock) error { return ended(k, isClosed(k.Done())) },
		"Verify":  func(k *holdfast.Lock) error { return k.Verify(e.soon()) },
		"Extend":  func(k *holdfast.Lock) error { return k.Extend(time.Hour) },
		"Release": func(k *holdfast.Lock) error { return k.Release(e.soon()) },
		"Context": func(k *holdfast.Lock) error {
			ctx, cancel := k.Context(e.ctx)
			defer cancel()
			return context.Cause(ctx)
		},
		"Deadline": func(k *holdfast.Lock) error { return ended(k, time.Until(k.Deadline()) <= 0) },
	}
	clients := make(map[string]*Client)
	locks := make(map[string]*holdfast.Lock)
	for name := range methods {
		clients[name] = e.client()
		locks[name] = e.holdKey(clients[name], e.prefix+name)
	}
	for _, c := range clients {
		c.Pause()
	}
	time.Sleep(e.engine.Lease)
	for name, method := range methods {
		e.failsWith(method(locks[name]), holdfast.ErrLost, "the first call after a pause longer than the lease reports the loss", name)
	}
	for _, c := range clients {
		c.Resume()
	}
	time.Sleep(e.engine.Lease / 4)
	for name, lock := range locks {
		e.endedBy(lock, "a lock that was lost in a pause stays lost: "+name, expired...)
	}
}

// pausePastTheDeadline resumes a client in the margin: its lease is over, and the engine's may still run.
func pausePastTheDeadline(e *env) {
	a, b := e.client(), e.client()
	e.needs(a.Pause != nil, "pause a client")
	if e.NeverExpires {
		e.keepsForever(a, a.Pause, a.Resume)
		return
	}
	lock := e.hold(a)
	a.Pause()
	time.Sleep(e.engine.Lease / 8)
	time.Sleep(time.Until(lock.Deadline()) + time.Millisecond)
	a.Resume()
	e.ends(lock, e.engine.Soon, "a renewal that comes too late revives nothing", expired...)
	next := e.holdWithin(e.patience(), b, e.key)
	e.isLive(next, ruleOne)
	e.endedBy(lock, "a renewal that comes too late revives nothing", expired...)
}

func clockJumpForward(e *env) {
	a, b := e.client(), e.client()
	e.needs(a.Jump != nil, "set the clock")
	lock := e.hold(a)
	a.Jump(e.engine.Lease / 8)
	e.isLive(lock, "a wall clock jump that is shorter than the rest of the lease costs nothing")
	e.holdKey(a, e.prefix+"renewed")
	a.Jump(e.engine.Lease)
	if e.NeverExpires {
		e.isLive(lock, "a wall clock jump ends no lock without a lease")
		e.outlasts(b, lock)
		return
	}
	e.endedBy(lock, "a wall clock jump beyond the lease ends the lock: it may have been a suspend", holdfast.ErrClockJump)
	e.ends(lock, 0, "an end by the wall clock is a loss", holdfast.ErrLost)
	e.holdWithin(e.patience(), b, e.key)
	e.holdWithin(e.patience(), a, e.prefix+"after the jump")
}

func clockJumpBackward(e *env) {
	a, b := e.client(), e.client()
	e.needs(a.Jump != nil, "set the clock")
	lock := e.hold(a)
	a.Jump(-time.Hour)
	for range 3 {
		time.Sleep(e.engine.Lease / 2)
		e.isLive(lock, "a wall clock that is set back changes nothing")
	}
	if e.NeverExpires {
		a.Cut()
		e.outlasts(b, lock)
		return
	}
	e.handsOver(lock, b, a.Cut, ruleExpires, ruleFirst+", even if its wall clock was set back")
}

// suspendIsNoticed leaves the lock alone: its work has only a context, and no renewal shows what the clock says.
func suspendIsNoticed(e *env) {
	a := e.client()
	e.needs(a.Jump != nil, "set the clock")
	lock := e.hold(a)
	ctx, cancel := lock.Context(e.Context())
	defer cancel()
	work := ctx.Done() // a later call would compare the clocks
	a.Cut()
	a.Jump(e.engine.Lease)
	within := max(e.engine.Lease/2, 3*time.Second/2)
	if e.NeverExpires {
		e.brokenIf(e.closes(work, within), "a suspend ends no lock without a lease", "Err: %v", lock.Err())
		return
	}
	const rule = "a suspend past the deadline ends the work within a second of the return, without a call"
	e.brokenIf(!e.closes(work, within), rule, "the context is live %v later", within)
	e.endedBy(lock, rule, holdfast.ErrClockJump)
}

// verifyAsksTheEngine breaks a grant while nothing can notify its holder.
func verifyAsksTheEngine(e *env) {
	a, b, lock := e.held()
	a.Cut()
	e.breaks(b, e.key)
	a.Heal()
	e.failsWith(lock.Verify(e.within(e.engine.Lease)), holdfast.ErrLost, "Verify asks the engine and finds a loss that was not yet reported")
	e.endedBy(lock, "a loss that Verify finds ends the lock", append(expired, holdfast.ErrBroken)...)
}

func doEndsWithTheLock(e *env) {
	const rule = "Do ends the ctx of its function when the lock ends, waits for it, and reports the loss"
	a, b := e.client(), e.client()
	running := make(chan *holdfast.Lock, 1)
	result := later(func() error {
		return a.Do(e.ctx, e.key, func(ctx context.Context, lock *holdfast.Lock) error {
			running <- lock
			<-ctx.Done()
			return context.Cause(ctx)
		})
	})
	lock := receive(e, running, e.engine.Soon, rule, "the function was not called")
	e.isHeld(b, e.key, ruleOne)
	a.Cut()
	if e.NeverExpires {
		e.outlasts(b, lock)
		e.brokenIf(len(result) > 0, ruleForever, "the ctx of the function has ended")
		e.breaks(b, e.key)
		a.Heal()
	}
	e.ends(lock, e.handOver(), rule, holdfast.ErrLost)
	time.Sleep(e.engine.Lease / 20)
	a.Heal()
	err := e.result(result, e.patience(), rule)
	e.brokenIf(!errors.Is(err, holdfast.ErrLost) || !errors.Is(err, lock.Err()), rule, "Do: %v, Err of the lock: %v", err, lock.Err())
}
