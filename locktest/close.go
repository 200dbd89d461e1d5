package locktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

var closeCases = []testCase{
	{"G11_CloseEndsEverything", closeEndsEverything},
	{"G11_UseAfterClose", useAfterClose},
	{"G11_CloseWhileCut", closeWhileCut},
	{closeWithoutEnd, closeWhileCutWithoutEnd},
	{"G11_CloseWithCtxDone", closeWithCtxDone},
	{"G11_CloseInAList", closeInAList},
	{"G11_CloseLeavesNoGoroutine", closeLeavesNoGoroutine},
}

const (
	closeWithoutEnd = "G11_CloseWhileCutWithoutEnd"
	ruleUnconfirmed = "Close reports what it could not confirm, with ErrReleasePending"
	ruleClosed      = "Close ends locks with ErrReleased and calls with ErrClosed"
)

// closeGrace is how much longer Close may take than its ctx or the last lease.
const closeGrace = time.Second

// settling is the further time in which an engine confirms what it gave up.
func (e *env) settling() time.Duration { return 2*e.engine.Lease + e.engine.Soon }

// closeEndsEverything closes a client several times at once.
func closeEndsEverything(e *env) {
	const n = 30
	l := &eventLog{}
	a, b := e.clientWith(ClientOptions{OnEvent: l.note}), e.client()
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
	errs := make(chan error, 3)
	for range cap(errs) {
		go func() { errs <- a.Close(e.soon()) }()
	}
	for range cap(errs) {
		const rule = "Close returns nil once everything is confirmed, also if it is called again and concurrently"
		e.noError(e.result(errs, e.engine.Soon, rule), rule)
	}
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
	e.closed(a, l)
	e.settle()
	outages := l.of(holdfast.Disconnected)
	e.brokenIf(len(outages) > 0, "an orderly Close is not an outage: no event reports one", "%+v", outages)
}

func useAfterClose(e *env) {
	a, b, lock := e.held()
	info := e.inspect(a)
	e.close(a)
	held := e.hold(b)
	calls := e.calls(a, info)
	calls["List"] = func(context.Context, string, options) error {
		for _, err := range a.List(e.soon(), e.prefix) {
			return err
		}
		return nil
	}
	for name, call := range calls {
		e.failsWith(call(e.soon(), e.key, nil), holdfast.ErrClosed, "every call after Close fails with ErrClosed", name)
	}
	for name, err := range map[string]error{"Verify": lock.Verify(e.soon()), "Extend": lock.Extend(time.Hour)} {
		e.failsWith(err, holdfast.ErrReleased, "a lock that Close ended says so", name)
	}
	e.release(lock)
	e.isLive(held, ruleSpares)
}

func closeWhileCut(e *env) {
	a, b := e.client(), e.client()
	locks := []*holdfast.Lock{e.hold(a), e.holdKey(a, e.prefix+"another")}
	info := e.inspect(a)
	w := e.waitKey(a, e.key, nil).waits(b, e.key, 1)
	a.Cut()
	calls := e.calls(a, info)
	delete(calls, "Observe") // an observer waits for another state
	results := make(map[string]<-chan error)
	for name, call := range calls {
		results[name] = later(func() error { return call(e.ctx, e.prefix+"other", nil) })
	}
	time.Sleep(e.engine.Lease / 20)
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
	for name, result := range results {
		e.failsWith(e.result(result, e.engine.Soon, "Close ends every call that waits"), holdfast.ErrClosed, ruleClosed, name)
	}
	next := []*holdfast.Lock{e.inherits(b, e.key), e.inherits(b, e.prefix+"another")}
	a.Heal()
	time.Sleep(e.engine.Lease / 2) // what was under way arrives
	e.areLive(next, ruleSpares)
}

// closeWhileCutWithoutEnd calls Close in an outage, with a ctx that never ends.
func closeWhileCutWithoutEnd(e *env) {
	a := e.client()
	lock := e.hold(a)
	a.Cut()
	over := time.Until(lock.Deadline())
	if e.NeverExpires {
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
	result := later(func() error { return c.Close(context.WithoutCancel(e.ctx)) })
	return e.result(result, limit, "Close returns when the last lease has expired, even if the engine never answers")
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
		e.noError(a.Close(e.done()), "Close returns nil if the engine answers, even if its ctx is done")
		for _, key := range keys {
			e.release(e.takes(b, key, "Close gives every key back, even if its ctx is done"))
		}
	}
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

// closeLeavesNoGoroutine labels what a client starts, and looks for that once the client is closed and what the harness has made
// for it is gone. Timers carry no labels: in real time it does not see what they have started. In virtual time package synctest does.
func closeLeavesNoGoroutine(e *env) {
	label, other := e.prefix, e.client()
	held := e.holdKey(other, e.prefix+"held")
	s := &scope{TB: e.TB}
	s.ctx, s.cancel = context.WithCancel(e.ctx)
	e.Cleanup(s.end)
	var a *Client
	var waits *waiter
	labelled := func(step func()) {
		pprof.Do(e.ctx, pprof.Labels("locktest", label), func(context.Context) { step() })
	}
	labelled(func() {
		a = e.harness.NewClient(s, ClientOptions{})
		lock := e.hold(a)
		waits = e.waitKey(a, held.Key(), nil)
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		for _, err := range a.Observe(ctx, e.key) {
			e.noError(err, "Observe tells the present state")
			break
		}
		e.release(lock)
		e.hold(a, holdfast.WithTTL(e.engine.Lease))
	})
	waits.waits(other, held.Key(), 1)
	a.Cut()
	time.Sleep(e.engine.Lease / 4)
	a.Heal()
	waits.cancel(nil)
	waits.fails(e.engine.Soon, ruleAtOnce)
	labelled(func() {
		e.noError(a.Close(e.within(e.patience())), "Close returns nil once everything is confirmed")
	})
	s.end()
	var left string
	if !e.eventually(e.engine.Soon, func() bool {
		left = goroutinesOf(label)
		return left == ""
	}) {
		e.broken("Close leaves no goroutine", "this is left:\n%s", left)
	}
}

// A scope is a test whose clean-up runs before its end.
type scope struct {
	testing.TB
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func()
}

func (s *scope) Context() context.Context { return s.ctx }

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	s.cancel()
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		f := s.cleanups[last]
		s.cleanups = s.cleanups[:last]
		f()
	}
}

// goroutinesOf returns the stacks of goroutines with a label.
func goroutinesOf(label string) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return fmt.Sprint(err)
	}
	var found []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
