package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

var giveUpCases = []testCase{
	{"G5_CancelWhileDisconnected", cancelWhileDisconnected},
	{"G5_CancelWhileWaitingDisconnected", cancelWhileWaitingDisconnected},
	{"G5_CancelAtAnyMoment", cancelAtAnyMoment},
	{"G5_CancelledBefore", cancelledBefore},
	{"G5_WaitElapses", waitElapses},
}

const (
	ruleAtOnce   = "Acquire returns as soon as its ctx ends"
	ruleSays     = "its error matches the error of ctx and says what it waited for"
	ruleNothing  = "a waiter that gives up leaves nothing behind"
	ruleAway     = "a try fails when the engine has been away for a lease"
	ruleWaitsFor = "a client that is cut off waits as long as ctx allows"
)

// gone ends the ctx of a waiter and checks its error.
func (w *waiter) gone(waitedFor ...error) {
	cause := errors.New("the caller went home")
	w.cancel(cause)
	err := w.fails(w.e.engine.Soon, ruleAtOnce)
	w.e.brokenIf(!errors.Is(err, context.Canceled) || !errors.Is(err, cause), ruleSays, "%v, want context.Canceled and its cause", err)
	for _, want := range waitedFor {
		if errors.Is(err, want) {
			return
		}
	}
	w.e.broken(ruleSays, "%v, want one of %v", err, waitedFor)
}

// cancelWhileDisconnected has several calls wait for the engine: until their ctx ends, their Retry ends, or for a lease.
func cancelWhileDisconnected(e *env) {
	a := e.client()
	a.Cut()
	tried := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := a.TryAcquire(e.ctx, e.key)
		tried <- err
	}()
	w := e.wait(a)
	_, err := a.Acquire(e.ctx, e.key, holdfast.WithRetry(holdfast.Retry{Attempts: 2, Initial: time.Millisecond}))
	e.failsWith(err, holdfast.ErrDisconnected, "Acquire fails with the engine's error when its Retry ends")
	time.Sleep(time.Until(began.Add(e.engine.Lease / 2)))
	w.stillWaits(ruleWaitsFor)
	w.gone(holdfast.ErrDisconnected)
	// Half a lease more is for a request that was under way.
	err = receive(e, tried, time.Until(began.Add(e.engine.Lease*3/2+e.engine.Soon)), ruleAway, "TryAcquire has not returned")
	e.brokenIf(!errors.Is(err, holdfast.ErrDisconnected) || errors.Is(err, holdfast.ErrHeld), ruleAway, "%v, want ErrDisconnected", err)
	a.Heal()
	e.settle()
	e.leavesNothing(e.key, e.patience(), ruleNothing)
	e.release(e.holdWithin(e.patience(), a, e.key))

	a.Cut()
	began = time.Now()
	_, err = a.TryAcquire(e.within(e.engine.Lease/4), e.key)
	e.brokenIf(!errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected), ruleSays, "TryAcquire: %v", err)
	late := time.Since(began) - e.engine.Lease/4
	e.brokenIf(late > e.engine.Soon, ruleAtOnce, "it took %v more", late)
	a.Heal()
	e.settle()
	e.leavesNothing(e.key, e.patience(), ruleNothing)
}

func cancelWhileWaitingDisconnected(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	lock := e.hold(a)
	w := e.wait(b).waits(a, e.key, 1)
	b.Cut()
	time.Sleep(e.engine.Lease / 4)
	w.stillWaits(ruleWaitsFor)
	w.gone(holdfast.ErrDisconnected, holdfast.ErrHeld)
	b.Heal()
	e.settle()
	if e.Ordered && !e.eventually(e.handOver(), func() bool {
		info, err := a.Inspect(e.soon(), e.key)
		return err == nil && len(info.Queue) == 0
	}) {
		e.broken(ruleNothing, "it was still in the queue %v later", e.handOver())
	}
	e.release(lock)
	e.release(e.holdWithin(e.handOver(), c, e.key))
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// cancelAtAnyMoment ends the ctx of waiters before, during and after the grant. The last waiter may stay.
func cancelAtAnyMoment(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, m := range e.modes() {
		holders, waiters, quit := []mode{"w"}, []mode{"w"}, 1
		switch m {
		case "r":
			waiters, quit = []mode{"r", "r", "w", "r"}, 3
		case "3":
			holders, waiters, quit = []mode{"3", "3", "3"}, []mode{"3", "3", "3", "3"}, 4
		}
		for i := range 10 {
			var locks []*holdfast.Lock
			for _, have := range holders {
				locks = append(locks, e.hold(a, have.option()))
			}
			var waiting []*waiter
			for j, want := range waiters {
				waiting = append(waiting, e.wait([]*Client{b, c}[j%2], want.option()))
			}
			time.Sleep(time.Duration(i) * e.engine.Soon / 1000)
			for _, w := range waiting[:quit] {
				go w.cancel(nil)
			}
			e.release(locks...)
			for j, w := range waiting {
				limit, rule := e.engine.Soon, ruleAtOnce
				if j >= quit {
					limit, rule = e.patience(), ruleServed
				}
				e.brokenIf(!e.closes(w.done, limit), rule, "round %d, waiter %d", i, j)
				if w.err == nil {
					e.isLive(w.lock, "a grant that Acquire returns is valid")
					e.release(w.lock)
				}
			}
			if m == "3" {
				e.all3(b, c)
			}
			e.settle()
			e.leavesNothing(e.key, e.patience(), ruleNothing)
		}
	}
}

// cancelledBefore makes calls about a free key whose ctx has ended.
func cancelledBefore(e *env) {
	a := e.client()
	lock := e.holdKey(a, e.prefix+"held")
	info, err := a.Inspect(e.soon(), lock.Key())
	e.noError(err, ruleAnswers, "Inspect")
	ctx := e.done()
	for name, call := range e.calls(a, info) {
		e.failsWith(call(ctx, e.key, nil), context.Canceled, "a ctx that has ended ends the call", name)
	}
	e.failsWith(lock.SetData(ctx, []byte("new")), context.Canceled, "a ctx that has ended ends the call", "SetData")
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

func waitElapses(e *env) {
	const rule = "when WithWait elapses, Acquire fails with a HeldError that names the holder"
	a, b, lock := e.held()
	wait := e.engine.Lease / 2 // long enough for a busy engine to name the holder
	began := time.Now()
	_, err := b.Acquire(e.ctx, e.key, holdfast.WithWait(wait))
	took := time.Since(began)
	var held *holdfast.HeldError
	e.brokenIf(!errors.As(err, &held) || errors.Is(err, context.DeadlineExceeded), rule, "%v", err)
	e.brokenIf(held.Holder.Owner != a.Owner() || held.Holder.Token != lock.Token(), rule, "it names %+v", held.Holder)
	e.brokenIf(took < wait || took > wait+e.engine.Soon, "WithWait bounds the wait", "%v, after %v", wait, took)
	e.failsWith(failed(b.AcquireAny(e.ctx, []string{e.key}, holdfast.WithWait(wait))), holdfast.ErrHeld, rule, "AcquireAny")
	e.release(lock)
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
	e.release(e.holdWithin(e.engine.Soon, b, e.key, holdfast.WithWait(e.engine.Soon)))
}
