package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

var closeCases = []testCase{
	{"G11_CloseEndsEverything", closeEndsEverything},
	{"G11_UseAfterClose", useAfterClose},
	{"G11_CloseWhileCut", closeWhileCut},
	{"G11_CloseEndsCallsThatWait", closeEndsCallsThatWait},
	{"G11_CloseTwiceAtOnce", closeTwiceAtOnce},
}

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
	if err := a.Close(e.soon()); err != nil {
		e.broken("Close returns nil once everything is confirmed", "%v", err)
	}
	for _, lock := range locks {
		if !isClosed(lock.Done()) {
			e.broken(ruleClosed, "Done of a lock is open")
		}
		e.endedBy(lock, ruleClosed, holdfast.ErrReleased)
		if left := e.harness.Residue(e.TB, lock.Key()); len(left) > 0 {
			e.broken("Close gives every key back", "the engine has %q of one", left)
		}
		e.release(lock)
	}
	for _, w := range waiters {
		if err := w.fails(e.engine.Soon, "Close ends every call that waits"); !errors.Is(err, holdfast.ErrClosed) {
			e.broken(ruleClosed, "Acquire: %v", err)
		}
	}
	e.isLive(other, "Close touches the locks of its own client only")
	e.release(other)
	e.leavesNothing(e.key, e.engine.Soon, "Close leaves no place in a queue")
	if err := a.Close(e.soon()); err != nil {
		e.broken("Close again returns what it did first", "%v", err)
	}
}

func useAfterClose(e *env) {
	a, b := e.client(), e.client()
	lock := e.hold(a)
	info, err := a.Inspect(e.soon(), e.key)
	if err != nil {
		e.Fatalf("%s: Inspect: %v", e.rule, err)
	}
	if err := a.Close(e.soon()); err != nil {
		e.Fatalf("%s: Close: %v", e.rule, err)
	}
	held := e.hold(b)
	calls := map[string]func() error{
		"Acquire":    func() error { _, err := a.Acquire(e.soon(), e.key); return err },
		"TryAcquire": func() error { _, err := a.TryAcquire(e.soon(), e.key); return err },
		"AcquireAny": func() error { _, err := a.AcquireAny(e.soon(), []string{e.key}); return err },
		"Inspect":    func() error { _, err := a.Inspect(e.soon(), e.key); return err },
		"Break":      func() error { return a.Break(e.soon(), info) },
		"Do": func() error {
			return a.Do(e.soon(), e.key, func(context.Context, *holdfast.Lock) error { return nil })
		},
		"List": func() error {
			for _, err := range a.List(e.soon(), e.prefix) {
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
		if !errors.Is(err, holdfast.ErrReleased) {
			e.broken("a lock that Close ended says so", "%s: %v", name, err)
		}
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
	if took := time.Since(began); took > limit+e.engine.Soon {
		e.broken("ctx bounds Close", "it took %v, ctx had %v", took, limit)
	}
	if err == nil {
		e.broken("Close tells what it could not confirm", "it returned nil, with no way to the engine")
	}
	for _, lock := range locks {
		e.ends(lock, 0, ruleClosed, holdfast.ErrReleased)
	}
	if err := w.fails(e.engine.Soon, "Close ends every call that waits"); !errors.Is(err, holdfast.ErrClosed) {
		e.broken(ruleClosed, "Acquire: %v", err)
	}
	e.holdWithin(e.handOver(), b, e.key)
	e.holdWithin(e.handOver(), b, e.prefix+"another")
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
		select {
		case r := <-results:
			if !errors.Is(r.err, holdfast.ErrClosed) && !(r.name == "Verify" && errors.Is(r.err, holdfast.ErrReleased)) {
				e.broken(ruleClosed, "%s: %v", r.name, r.err)
			}
		case <-time.After(e.engine.Lease/10 + e.engine.Soon):
			e.broken("Close ends every call that waits", "one still does")
		}
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
		select {
		case err := <-errs:
			if err != nil {
				e.broken("Close may be called from anywhere and again, with the same result", "%v", err)
			}
		case <-time.After(e.engine.Soon):
			e.broken("Close may be called from anywhere and again, with the same result", "it hangs")
		}
	}
	e.leavesNothing(e.key, e.engine.Soon, "Close gives every key back")
}
