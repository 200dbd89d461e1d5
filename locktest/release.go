package locktest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

var releaseCases = []testCase{
	{"G10_ConfirmedMeansFree", confirmedMeansFree},
	{"G10_HolderFirst", releaseHolderFirst},
	{"G10_PendingWhileCut", pendingWhileCut},
	{"G10_ReleaseOfWhatIsGone", releaseOfWhatIsGone},
	{"G10_LateReleaseSparesTheSuccessor", lateReleaseSparesTheSuccessor},
	{"G10_BreakSparesTheSuccessor", breakSparesTheSuccessor},
	{"G10_DoReleases", doReleases},
}

const ruleSpares = "a release never touches another holder's lock"

// confirmedMeansFree releases locks from many goroutines, and again when another client has the key.
func confirmedMeansFree(e *env) {
	const rule = "Release may be called again and concurrently, with the same result"
	clients := e.clients(2)
	var last *holdfast.Lock
	for i := range 4 {
		lock := e.hold(clients[i%2])
		if last != nil {
			e.noError(last.Release(e.soon()), rule)
			e.isLive(lock, ruleSpares)
		}
		errs := make(chan error, 10)
		for range cap(errs) {
			go func() { errs <- lock.Release(e.soon()) }()
		}
		for n := range cap(errs) {
			e.noError(e.result(errs, e.engine.Soon, rule), rule)
			left := e.harness.Residue(e.TB, e.key)
			e.brokenIf(n == 0 && len(left) > 0, "nil from Release means that the engine has let go", "it has %q", left)
		}
		e.endedBy(lock, "a lock that was released says so", holdfast.ErrReleased)
		last = lock
	}
}

// releaseHolderFirst releases a lock with a ctx that is done.
func releaseHolderFirst(e *env) {
	_, b, lock := e.held()
	next := e.handsOver(lock, b, func() {
		err := lock.Release(e.done())
		e.brokenIf(err != nil && (!errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.Canceled)),
			"Release with a ctx that is done returns nil, or ErrReleasePending with the ctx's error", "%v", err)
		e.brokenIf(!isClosed(lock.Done()), "Release ends the lock for the holder at once", "Done is open")
	}, "a release is sent although its ctx is done", "Release ends the lock for the holder first, then in the engine")
	e.release(next, lock) // which waits for the same release
	e.leavesNothing(e.key, e.engine.Soon, "a release is sent although its ctx is done")
}

func pendingWhileCut(e *env) {
	a, b, lock := e.held()
	done := lock.Done()
	a.Cut()
	wait := e.engine.Lease / 10
	began := time.Now()
	err := lock.Release(e.within(wait))
	e.brokenIf(!errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded),
		"a Release that the engine does not confirm in time is pending", "%v", err)
	took := time.Since(began)
	e.brokenIf(took > wait+e.engine.Soon, "ctx bounds the wait for the confirmation", "%v, for %v", took, wait)
	e.brokenIf(!isClosed(done), "Release ends the lock for the holder at once", "Done is open")
	e.endedBy(lock, "a lock that was released says so", holdfast.ErrReleased)
	a.Heal()
	e.noError(lock.Release(e.within(e.patience())), "a pending release is delivered when the engine can be reached; later calls wait for it")
	e.release(e.holdWithin(e.engine.Soon, b, e.key))
	e.leavesNothing(e.key, e.engine.Soon, "a pending release is delivered")
}

// releaseOfWhatIsGone releases a broken lock, whether or not its holder has been notified.
func releaseOfWhatIsGone(e *env) {
	a, b := e.client(), e.client()
	for i := range 5 {
		lock := e.holdWithin(e.engine.Soon, a, e.key)
		e.breaks(b, e.key)
		time.Sleep(time.Duration(i) * e.engine.Soon / 1000)
		e.failsWith(lock.Release(e.soon()), holdfast.ErrLost, "Release of a lock that turns out to have been gone already says that it was lost")
	}
}

// lateReleaseSparesTheSuccessor delivers a release when another client has the key.
func lateReleaseSparesTheSuccessor(e *env) {
	a, b := e.client(), e.client()
	lost, pending := e.holdKey(a, e.prefix+"lost"), e.holdKey(a, e.prefix+"pending")
	a.Cut()
	e.failsWith(pending.Release(e.within(e.engine.Lease/20)), holdfast.ErrReleasePending, "a Release that is not confirmed in time is pending")
	nextLost, nextPending := e.inherits(b, lost.Key()), e.inherits(b, pending.Key())
	unknown := holdfast.ErrLost
	if e.NeverExpires {
		unknown = holdfast.ErrReleasePending // the holder's clock has not ended it
	}
	e.failsWith(lost.Release(e.within(e.engine.Lease/20)), unknown, "Release after a loss reports the loss")
	a.Heal()
	e.mayFail(pending.Release(e.within(e.patience())), holdfast.ErrLost, "a pending release ends when the engine can be reached")
	time.Sleep(e.engine.Lease / 2)
	e.isLive(nextLost, ruleSpares)
	e.isLive(nextPending, ruleSpares)
	e.isHeld(a, lost.Key(), ruleSpares)
}

func breakSparesTheSuccessor(e *env) {
	const rule = "Break removes exactly the grant that its Info describes"
	a, b := e.client(), e.client()
	first := e.hold(a)
	stale := e.inspect(b)
	e.release(first)
	e.failsWith(b.Break(e.soon(), stale), holdfast.ErrChanged, rule, "for a grant that is gone")
	second := e.hold(a) // by the same client: only the grant differs
	e.failsWith(b.Break(e.soon(), stale), holdfast.ErrChanged, rule, "for a grant that is gone, with the key held by another")
	e.isLive(second, rule)
	waiting := e.wait(b).waits(b, e.key, 1)
	held := e.isHeld(b, e.key, ruleOne)
	e.noError(b.Break(e.soon(), held.Holder), "Break accepts the Info of a HeldError")
	next := waiting.granted(e.handOver(), "a break lets the next waiter in")
	e.ends(second, e.engine.Notice, ruleTold, holdfast.ErrBroken)
	e.failsWith(b.Break(e.soon(), held.Holder), holdfast.ErrChanged, rule, "for the second time")
	time.Sleep(e.engine.Lease / 20)
	e.isLive(next, rule)
}

func doReleases(e *env) {
	const rule = "Do releases, whatever its function does, and joins the errors"
	a := e.client()
	failed := errors.New("the work failed")
	ctx, cancel := context.WithCancel(e.ctx)
	for what, c := range map[string]struct {
		fn   func(context.Context, *holdfast.Lock) error
		want error
	}{
		"it fails": {func(ctx context.Context, lock *holdfast.Lock) error { return cmp.Or(lock.Err(), ctx.Err(), failed) }, failed},
		"it tries the same key": {func(ctx context.Context, _ *holdfast.Lock) error {
			return a.TryDo(ctx, e.key, func(context.Context, *holdfast.Lock) error { return nil })
		}, holdfast.ErrHeld},
		"it releases the lock": {func(_ context.Context, lock *holdfast.Lock) error { return lock.Release(e.soon()) }, nil},
		"its lock ends": {func(_ context.Context, lock *holdfast.Lock) error {
			_ = lock.Extend(time.Millisecond)
			<-lock.Done()
			return nil
		}, holdfast.ErrTTLExpired},
	} {
		err := a.Do(ctx, e.key, c.fn)
		e.brokenIf(!errors.Is(err, c.want), rule, "%s: %v, want %v", what, err, c.want)
		e.leavesNothing(e.key, e.engine.Soon, rule+": "+what)
	}
	err := a.TryDo(ctx, e.key, func(ctx context.Context, _ *holdfast.Lock) error {
		cancel()
		<-ctx.Done()
		return nil
	})
	e.noError(err, "TryDo releases on a context of its own")
	e.leavesNothing(e.key, e.engine.Soon, rule+": its ctx ends")
	func() {
		defer func() {
			e.brokenIf(recover() != "stop", "Do does not swallow a panic of its function", "it does")
		}()
		_ = a.Do(e.soon(), e.key, func(context.Context, *holdfast.Lock) error { panic("stop") })
	}()
	e.leavesNothing(e.key, e.engine.Soon, rule+": it panicked")
}
