package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

var closeCases = []testCase{
	{"G11_CloseEndsEverything", closeEndsEverything},
	{"G11_UseAfterClose", useAfterClose},
	{"G11_CloseWhileCut", closeWhileCut},
	{closeWithoutEnd, closeWhileCutWithoutEnd},
	{"G11_CloseAfterTheLoss", closeAfterTheLoss},
	{"G11_CloseWithCtxDone", closeWithCtxDone},
	{"G11_CloseIsNoOutage", closeIsNoOutage},
	{"G11_CloseEndsCallsThatWait", closeEndsCallsThatWait},
	{"G11_CloseTwiceAtOnce", closeTwiceAtOnce},
	{"G11_CloseInAList", closeInAList},
	{"G11_CloseLeavesNoGoroutine", closeLeavesNoGoroutine},
}

const closeWithoutEnd = "G11_CloseWhileCutWithoutEnd"

// closeGrace is how much longer Close may take than its ctx or the last lease.
const closeGrace = time.Second

// settling is the further time in which an engine confirms what it gave up.
func (e *env) settling() time.Duration { return 2*e.engine.Lease + e.engine.Soon }

const ruleUnconfirmed = "Close reports what it could not confirm, with ErrReleasePending"

const ruleClosed = "Close ends locks with ErrReleased and calls with ErrClosed"

func closeEndsEverything(e *env) {
	const n = 30
	a, b := e.client(), e.client()
	var locks []*holdfast.Lock
	for i := range n {
		locks = append(locks, e.holdKey(a, fmt.Sprintf("%sheld%d", e.prefix, i)))
	}
	other := e.hold(b)
	var waiters []*waiter
	for range n {
		waiters = append(waiters, e.wait(a))
	}
	waiters[0].waits(b, e.key, n)
	e.noError(a.Close(e.soon()), "Close returns nil once everything is confirmed")
	for _, lock := range locks {
		e.brokenIf(!isClosed(lock.Done()), ruleClosed, "Done of a lock is open")
		e.endedBy(lock, ruleClosed, holdfast.ErrReleased)
		left := e.harness.Residue(e.TB, lock.Key())
		e.brokenIf(len(left) > 0, "Close gives every key back", "the engine still has %q", left)
		e.release(lock)
	}
	for _, w := range waiters {
		e.failsWith(w.fails(e.engine.Soon, "Close ends every call that waits"), holdfast.ErrClosed, ruleClosed, "Acquire")
	}
	e.isLive(other, "Close touches the locks of its own client only")
	e.release(other)
	e.leavesNothing(e.key, e.engine.Soon, "Close leaves no contender in a queue")
	e.noError(a.Close(e.soon()), "a second Close returns the same result as the first")
}

func useAfterClose(e *env) {
	a, b, lock := e.held()
	info := e.inspect(a)
	e.close(a)
	held := e.hold(b)
	calls := map[string]func() error{
		"Acquire":    func() error { _, err := a.Acquire(e.soon(), e.key); return err },
		"TryAcquire": func() error { _, err := a.TryAcquire(e.soon(), e.key); return err },
		"AcquireAny": func() error { _, err := a.AcquireAny(e.soon(), []string{e.key}); return err },
		"Inspect":    func() error { _, err := a.Inspect(e.soon(), e.key); return err },
		"Break":      func() error { return a.Break(e.soon(), info) },
		"Ask":        func() error { return a.Ask(e.soon(), info) },
		"TryDo": func() error {
			return a.TryDo(e.soon(), e.key, func(context.Context, *holdfast.Lock) error { return nil })
		},
		"Do": func() error {
			return a.Do(e.soon(), e.key, func(context.Context, *holdfast.Lock) error { return nil })
		},
		"List": func() error {
			for _, err := range a.List(e.soon(), e.prefix) {
				return err
			}
			return nil
		},
		"Observe": func() error {
			for _, err := range a.Observe(e.soon(), e.key) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, holdfast.ErrClosed) {
			e.broken("every call after Close fails with ErrClosed", "%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{"Verify": lock.Verify(e.soon()), "Extend": lock.Extend(time.Hour)} {
		e.brokenIf(!errors.Is(err, holdfast.ErrReleased), "a lock that Close ended says so", "%s: %v", name, err)
	}
	e.release(lock)
	e.isLive(held, ruleSpares)
}

func closeWhileCut(e *env) {
	a, b := e.client(), e.client()
	locks := []*holdfast.Lock{e.hold(a), e.holdKey(a, e.prefix+"another")}
	w := e.waitKey(a, e.key, nil).waits(b, e.key, 1)
	a.Cut()
	limit := e.engine.Lease / 10
	began := time.Now()
	err := a.Close(e.within(limit))
	took := time.Since(began)
	e.brokenIf(took > limit+closeGrace+e.engine.Soon, "ctx bounds Close, with a short grace", "it took %v, ctx had %v", took, limit)
	e.unconfirmed(err, began)
	for _, lock := range locks {
		e.ends(lock, 0, ruleClosed, holdfast.ErrReleased)
	}
	e.failsWith(w.fails(e.engine.Soon, "Close ends every call that waits"), holdfast.ErrClosed, ruleClosed, "Acquire")
	next := []*holdfast.Lock{e.inherits(b, e.key), e.inherits(b, e.prefix+"another")}
	a.Heal()
	time.Sleep(e.engine.Lease / 2) // what was under way arrives
	for _, lock := range next {
		e.isLive(lock, ruleSpares)
	}
}

// closeWhileCutWithoutEnd calls Close in an outage, with a ctx that never ends.
func closeWhileCutWithoutEnd(e *env) {
	a := e.client()
	lock := e.hold(a)
	a.Cut()
	over := time.Until(lock.Deadline())
	if e.engine.NeverExpires {
		over = time.Minute // as Client.Close says
	}
	began := time.Now()
	err := e.closesBy(a, over+closeGrace+e.settling())
	e.unconfirmed(err, began)
	e.brokenIf(err != nil && !strings.Contains(err.Error(), e.key), "Close names the keys that it could not confirm", "%v", err)
	e.endedBy(lock, ruleClosed, holdfast.ErrReleased)
}

// unconfirmed checks the result of a Close in an outage. An engine may know that an expired lease needs no release.
func (e *env) unconfirmed(err error, began time.Time) {
	e.brokenIf(!errors.Is(err, holdfast.ErrReleasePending) && (err != nil || time.Since(began) < e.engine.Lease/2),
		ruleUnconfirmed, "it returned %v while the engine was out of reach", err)
}

// closesBy calls Close with a ctx that never ends.
func (e *env) closesBy(c *Client, limit time.Duration) error {
	result := make(chan error, 1)
	go func() { result <- c.Close(context.WithoutCancel(e.ctx)) }()
	return receive(e, result, limit, "Close returns when the last lease has expired, even if the engine never answers", "it has not returned")
}

func closeAfterTheLoss(e *env) {
	a, b, lock := e.held()
	a.Cut()
	if e.engine.NeverExpires {
		e.outlasts(b, lock)
		if err := a.Close(e.within(e.engine.Lease / 10)); !errors.Is(err, holdfast.ErrReleasePending) {
			e.broken(ruleUnconfirmed, "it returned %v, and the key is held for ever", err)
		}
		e.endedBy(lock, ruleClosed, holdfast.ErrReleased)
		e.release(e.inherits(b, e.key))
		return
	}
	e.ends(lock, e.engine.Lease+e.engine.Soon, "a lock of a client that is cut off ends", expired...)
	_ = e.closesBy(a, closeGrace+e.settling())
	e.endedBy(lock, "Close does not change how a lock ended", expired...)
	e.release(e.holdWithin(e.handOver(), b, e.key))
}

// closeWithCtxDone calls Close as deferred calls do: the engine answers, so every key is given back at once.
func closeWithCtxDone(e *env) {
	b := e.client()
	for i := range 5 {
		a := e.client()
		keys := []string{fmt.Sprint(e.prefix, i, "a"), fmt.Sprint(e.prefix, i, "b")}
		for _, key := range keys {
			e.holdKey(a, key)
		}
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		e.noError(a.Close(ctx), "Close returns nil if the engine answers, even if its ctx is done")
		for _, key := range keys {
			e.release(e.takes(b, key, "Close gives every key back, even if its ctx is done"))
		}
	}
}

func closeIsNoOutage(e *env) {
	const rule = "an orderly Close is not an outage: no event reports one"
	a, l := e.watched()
	e.hold(a)
	e.closed(a, l)
	e.settle()
	outages := l.of(holdfast.Disconnected)
	e.brokenIf(len(outages) > 0, rule, "%+v", outages)
}

func closeEndsCallsThatWait(e *env) {
	a := e.client()
	lock := e.hold(a)
	a.Cut()
	calls := map[string]func() error{
		"TryAcquire": func() error { _, err := a.TryAcquire(e.ctx, e.prefix+"other"); return err },
		"Acquire":    func() error { _, err := a.Acquire(e.ctx, e.prefix+"other"); return err },
		"Inspect":    func() error { _, err := a.Inspect(e.ctx, e.key); return err },
		"Verify":     func() error { return lock.Verify(e.ctx) },
	}
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(calls))
	for name, call := range calls {
		go func() { results <- result{name, call()} }()
	}
	time.Sleep(e.engine.Lease / 20)
	go a.Close(e.within(e.engine.Lease / 10))
	for range calls {
		r := receive(e, results, e.engine.Lease/10+e.engine.Soon, "Close ends every call that waits", "a call still waits")
		e.brokenIf(!errors.Is(r.err, holdfast.ErrClosed) && !(r.name == "Verify" && errors.Is(r.err, holdfast.ErrReleased)),
			ruleClosed, "%s: %v", r.name, r.err)
	}
}

func closeTwiceAtOnce(e *env) {
	a := e.client()
	e.hold(a)
	errs := make(chan error, 3)
	for range cap(errs) {
		go func() { errs <- a.Close(e.within(e.engine.Soon)) }()
	}
	for range cap(errs) {
		const rule = "Close may be called again and concurrently, with the same result"
		e.noError(receive(e, errs, e.engine.Soon, rule, "it has not returned"), rule)
	}
	e.leavesNothing(e.key, e.engine.Soon, "Close gives every key back")
}

// closeInAList closes a client in the body of a loop over its List.
func closeInAList(e *env) {
	a := e.client()
	for _, key := range e.keys(3) {
		e.holdKey(a, key)
	}
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for _, err := range a.List(ctx, e.prefix) {
			if err != nil {
				break
			}
			if err := a.Close(e.within(e.patience())); err != nil {
				e.Errorf("%s: Close: %v", e.rule, err)
			}
		}
	}()
	e.brokenIf(!e.closes(over, e.patience()), "Close does not wait for a List, whose loop may have called it", "it waits")
}
