package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// takes insists that TryAcquire gets a key.
func (e *env) takes(c *Client, key, rule string, opts ...holdfast.Option) *holdfast.Lock {
	lock, err := c.TryAcquire(e.soon(), key, opts...)
	e.brokenIf(err != nil, rule, "TryAcquire(%q): %v", key, err)
	return e.granted(key, lock)
}

// granted remembers a lock for isHeld.
func (e *env) granted(key string, lock *holdfast.Lock) *holdfast.Lock {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.locks == nil {
		e.locks = make(map[string][]*holdfast.Lock)
	}
	e.locks[key] = append(e.locks[key], lock)
	return lock
}

// live returns a lock of a key that is live by its own account, or nil.
func (e *env) live(key string) *holdfast.Lock {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, lock := range e.locks[key] {
		if lock.Err() == nil {
			return lock
		}
	}
	return nil
}

// isHeld insists that TryAcquire does not get the key.
func (e *env) isHeld(c *Client, key, rule string, opts ...holdfast.Option) *holdfast.HeldError {
	lock, err := c.TryAcquire(e.soon(), key, opts...)
	if err == nil {
		if other := e.live(key); other != nil && len(opts) == 0 { // others may be lost if the machine stops, but not this one
			e.refuted(rule, "TryAcquire(%q) was granted, token %v, while the lock with token %v was live", key, lock.Token(), other.Token())
		}
		e.broken(rule, "TryAcquire(%q) was granted, token %v", key, lock.Token())
	}
	var held *holdfast.HeldError
	e.brokenIf(!errors.As(err, &held) || !errors.Is(err, holdfast.ErrHeld) || held.Key != key,
		"TryAcquire of a key that is held fails with a HeldError for it", "TryAcquire(%q): %v", key, err)
	return held
}

// isLive insists that a lock is live, by its own account and by the engine's.
func (e *env) isLive(lock *holdfast.Lock, rule string) {
	e.noError(lock.Err(), rule, "Err")
	e.brokenIf(isClosed(lock.Done()), rule, "Done is closed")
	e.noError(lock.Verify(e.soon()), rule, "Verify")
}

// areLive insists that locks are live.
func (e *env) areLive(locks []*holdfast.Lock, rule string) {
	for _, lock := range locks {
		e.isLive(lock, rule)
	}
}

// ends insists that a lock ends within d, for one of the causes.
func (e *env) ends(lock *holdfast.Lock, d time.Duration, rule string, causes ...error) {
	e.brokenIf(!e.closes(lock.Done(), d), rule, "Done is open after %v more; Err: %v", d, lock.Err())
	e.endedBy(lock, rule, causes...)
}

// endedBy insists that a lock has ended for one of the causes, and no other.
func (e *env) endedBy(lock *holdfast.Lock, rule string, causes ...error) {
	err := lock.Err()
	for _, cause := range causes {
		if errors.Is(err, cause) {
			return
		}
	}
	e.broken(rule, "Err: %v, want %v", err, causes)
}

// expired are the causes of a loss by silence: which one is up to the engine.
var expired = []error{holdfast.ErrSessionExpired, holdfast.ErrLeaseExpired}

// closes reports whether a channel is closed within d.
func (e *env) closes(ch <-chan struct{}, d time.Duration) bool {
	if isClosed(ch) {
		return true // also if d has passed
	}
	select {
	case <-ch:
		return true
	case <-time.After(d):
		return false
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// eventually polls until a condition holds, for at most d.
func (e *env) eventually(d time.Duration, cond func() bool) bool {
	step := min(max(d/100, time.Millisecond), 50*time.Millisecond)
	for end := time.Now().Add(d); ; time.Sleep(step) {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// becomes insists that within d a condition holds. Look returns it, and what a failure shows.
func (e *env) becomes(d time.Duration, rule string, look func() (bool, any)) {
	var saw any
	holds := e.eventually(d, func() (ok bool) { ok, saw = look(); return ok })
	e.brokenIf(!holds, rule, "after %v: %+v", d, saw)
}

// leavesNothing insists that within d the engine stores nothing for a key.
func (e *env) leavesNothing(key string, d time.Duration, rule string) {
	var left []string
	if !e.eventually(d, func() bool {
		left = e.harness.Residue(e.TB, key)
		return len(left) == 0
	}) {
		found := strings.Join(left, "; ")
		if !e.eventually(e.patience(), func() bool { return len(e.harness.Residue(e.TB, key)) == 0 }) {
			e.refuted(rule, "after %v the engine still has, for %q: %s", d+e.patience(), key, found)
		}
		e.broken(rule, "after %v the engine still has, for %q: %s", d, key, found)
	}
}

// leavesNothingOf insists that within d the engine stores nothing for several keys.
func (e *env) leavesNothingOf(keys []string, d time.Duration, rule string) {
	for _, key := range keys {
		e.leavesNothing(key, d, rule)
	}
}

// told is what others are told of a key by Inspect, by List and in a HeldError, except for the last heartbeat.
func (e *env) told(c *Client, key string) (texts []string) {
	infos := []holdfast.Info{e.inspectKey(c, key), e.isHeld(c, key, ruleOne).Holder}
	for info, err := range c.List(e.soon(), key) {
		e.noError(err, ruleAnswers, "List")
		if info.Key == key {
			infos = append(infos, info)
		}
	}
	for _, info := range infos {
		info.LastHeard = time.Time{}
		texts = append(texts, fmt.Sprintf("%+v", info))
	}
	return texts
}

// settle gives late events time to arrive before a case asserts that there are none.
func (e *env) settle() { time.Sleep(e.engine.Lease / 50) }

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
	if w.e.Ordered {
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
	if !e.Ordered {
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
		if !e.Ordered {
			e.eventually(e.patience(), func() bool {
				i = slices.IndexFunc(waiters, func(w *waiter) bool { return isClosed(w.done) })
				return i >= 0
			})
		}
		lock := waiters[max(0, i)].granted(e.handOver(), ruleServed)
		waiters = slices.Delete(waiters, max(0, i), max(0, i)+1)
		for _, w := range waiters {
			if e.Ordered {
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
