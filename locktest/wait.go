package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A waiter is a call of Acquire or AcquireAll that is expected to wait.
type waiter struct {
	e      *env
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the call has returned
	lock   *holdfast.Lock
	locks  *holdfast.Locks // of AcquireAll
	err    error
}

// wait calls Acquire for the key of the case on a goroutine.
func (e *env) wait(c *Client, opts ...holdfast.Option) *waiter {
	return e.waitKey(c, e.key, nil, opts...)
}

// waitKey calls Acquire for any key; granted, if not nil, is called on the same goroutine once it has succeeded.
func (e *env) waitKey(c *Client, key string, granted func(*holdfast.Lock), opts ...holdfast.Option) *waiter {
	return e.waitFor(func(ctx context.Context, w *waiter) {
		w.lock, w.err = c.Acquire(ctx, key, opts...)
		if w.err == nil && granted != nil {
			granted(w.lock)
		}
	})
}

func (e *env) waitFor(call func(context.Context, *waiter)) *waiter {
	ctx, cancel := context.WithCancelCause(e.ctx)
	w := &waiter{e: e, cancel: cancel, done: make(chan struct{})}
	e.Cleanup(func() { cancel(nil) })
	go func() {
		defer close(w.done)
		call(ctx, w)
	}()
	return w
}

// waits gives the call time to begin, and insists that it has not returned.
func (w *waiter) waits(probe *Client, key string, place int) *waiter {
	if w.e.engine.Ordered {
		w.e.queued(probe, key, place)
	} else {
		time.Sleep(w.e.engine.Lease / 20)
	}
	w.stillWaits("Acquire waits while the key is held")
	return w
}

// stillWaits insists that the call has not returned.
func (w *waiter) stillWaits(rule string) {
	w.e.brokenIf(isClosed(w.done), rule, "Acquire has returned, with error %v", w.err)
}

// queued waits until n clients are in the queue, and returns their owners. Where there is no queue, it returns at once.
func (e *env) queued(probe *Client, key string, n int) []string {
	if !e.engine.Ordered {
		return nil
	}
	var owners []string
	if !e.eventually(e.engine.Soon, func() bool {
		info, err := probe.Inspect(e.within(e.engine.Soon), key)
		e.noError(err, ruleAnswers, "Inspect")
		owners = owners[:0]
		for _, w := range info.Queue {
			owners = append(owners, w.Owner)
		}
		return len(owners) == n
	}) {
		e.broken("a client that waits is in the queue once", "%d wait, and the queue is %q", n, owners)
	}
	return slices.Clone(owners)
}

// granted insists that the call succeeds within d.
func (w *waiter) granted(d time.Duration, rule string) *holdfast.Lock {
	w.e.brokenIf(!w.e.closes(w.done, d), rule, "Acquire still waits after %v", d)
	w.e.brokenIf(w.err != nil, rule, "Acquire: %v", w.err)
	return w.lock
}

// inTurn releases what waiters are granted, one after the other: in this order, if the engine promises one.
func (e *env) inTurn(waiters ...*waiter) {
	for len(waiters) > 0 {
		i := 0
		if !e.engine.Ordered {
			e.eventually(e.patience(), func() bool {
				i = slices.IndexFunc(waiters, func(w *waiter) bool { return isClosed(w.done) })
				return i >= 0
			})
		}
		lock := waiters[max(0, i)].granted(e.handOver(), ruleServed)
		waiters = slices.Delete(waiters, max(0, i), max(0, i)+1)
		for _, w := range waiters {
			if e.engine.Ordered {
				w.stillWaits(ruleTurns)
			}
		}
		e.release(lock)
	}
}

// fails insists that the call fails within d, and returns its error.
func (w *waiter) fails(d time.Duration, rule string) error {
	w.e.brokenIf(!w.e.closes(w.done, d), rule, "Acquire has not returned after %v", d)
	w.e.brokenIf(w.err == nil, rule, "Acquire succeeded")
	return w.err
}
