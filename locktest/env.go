package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A testCase tests one rule. Its name begins with the number of its guarantee.
type testCase struct {
	name string
	run  func(e *env)
}

// env is what a case works with.
type env struct {
	testing.TB
	engine  Engine
	harness Harness
	rule    string // the number of the guarantee
	prefix  string // of all keys of the case; unique to it
	key     string // the key of cases that need only one
	ctx     context.Context
	stalls  bool // a client that is cut off is stalled in place of that

	mu    sync.Mutex
	locks map[string][]*holdfast.Lock // by their keys
}

// caseLimit bounds a case, in multiples of the longest step. The ctx of each call ends with it.
const caseLimit = 10

const ruleReturns = "every call returns once its ctx has ended"

func runCase(t testing.TB, engine Engine, c testCase) {
	if engine.Lease <= 0 || engine.Start == nil {
		t.Fatal("locktest: Engine needs Start and Lease")
	}
	if engine.Soon == 0 {
		engine.Soon = 10 * time.Second
	}
	if engine.Late == 0 {
		engine.Late = engine.Lease + engine.Soon
	}
	if engine.Notice == 0 {
		engine.Notice = engine.Soon
	}
	e := &env{
		TB:      t,
		engine:  engine,
		harness: engine.Start(t),
		prefix:  fmt.Sprintf("locktest-%s/", rand.Text()[:10]),
	}
	e.rule, _, _ = strings.Cut(c.name, "_")
	e.key = e.prefix + c.name
	limit := caseLimit * e.patience()
	if c.name == fairSharesName {
		limit += fairFor * engine.Lease
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit,
		fmt.Errorf("locktest: %s takes too long", c.name))
	defer cancel()
	e.ctx = ctx
	over := make(chan struct{})
	go func() { // a fatal failure ends the goroutine
		defer close(over)
		c.run(e)
	}()
	e.returns(over, limit, "the case itself")
}

// returns waits for a call that must have returned within d and the longest step, and gives it up if it has not.
func (e *env) returns(over <-chan struct{}, d time.Duration, what string) {
	e.Helper()
	select {
	case <-over:
	case <-time.After(d + e.patience()):
		stacks := make([]byte, 1<<20)
		defer e.leave()
		e.unexcused().Error(e.breach(ruleReturns, "%s has not; all goroutines:\n%s", what, stacks[:runtime.Stack(stacks, true)]))
	}
}

// patience bounds what must happen in the end, after the end of a lease and a few tries.
func (e *env) patience() time.Duration { return 2*e.engine.Lease + e.engine.Late + e.engine.Soon }

// handOver bounds the time from a holder's last request to the next grant.
func (e *env) handOver() time.Duration { return e.engine.Lease + e.engine.Late }

// client connects a client; it is closed when the case ends.
func (e *env) client() *Client {
	e.Helper()
	return e.clientWith(ClientOptions{})
}

func (e *env) clientWith(o ClientOptions) *Client {
	e.Helper()
	c := e.harness.NewClient(e.TB, o)
	e.Cleanup(func() {
		if c.Resume != nil {
			c.Resume()
		}
		c.Heal()
		ctx, cancel := context.WithTimeout(context.Background(), e.patience())
		defer cancel()
		over := make(chan struct{})
		go func() {
			defer close(over)
			if err := c.Close(ctx); err != nil {
				e.Logf("closing a client after the case: %v", err)
			}
		}()
		e.returns(over, e.patience(), "Close after the case")
	})
	if e.stalls {
		e.needs(c.Stall != nil, "deliver what a client sends while it is cut off")
		c.Cut = c.Stall
	}
	return c
}

// within is a context that ends after d.
func (e *env) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, d)
	e.Cleanup(cancel)
	return ctx
}

// soon is a context for one step that waits only for the engine's reply.
func (e *env) soon() context.Context { return e.within(e.engine.Soon) }

// broken fails the case: a rule of its guarantee does not hold.
func (e *env) broken(rule, format string, args ...any) {
	e.Helper()
	e.Fatal(e.breach(rule, format, args...))
}

// breach describes a rule that does not hold.
func (e *env) breach(rule, format string, args ...any) string {
	return fmt.Sprintf("%s broken: %s:\n\t%s", e.rule, rule, fmt.Sprintf(format, args...))
}

// hold acquires the key of the case, which is free.
func (e *env) hold(c *Client, opts ...holdfast.Option) *holdfast.Lock {
	e.Helper()
	return e.holdKey(c, e.key, opts...)
}

// held returns two clients, of which the first holds the key of the case.
func (e *env) held() (holder, other *Client, lock *holdfast.Lock) {
	e.Helper()
	holder, other = e.client(), e.client()
	return holder, other, e.hold(holder)
}

func (e *env) holdKey(c *Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	e.Helper()
	return e.holdWithin(e.engine.Soon, c, key, opts...)
}

func (e *env) holdWithin(d time.Duration, c *Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	e.Helper()
	lock, err := c.Acquire(e.within(d), key, opts...)
	if err != nil {
		e.broken("a key that is free, or becomes free, is granted", "Acquire(%q): %v", key, err)
	}
	return e.granted(key, lock)
}

// watches waits until a client would notice a reclaim.
func (e *env) watches(c *Client) {
	if c.Watches != nil {
		c.Watches()
	}
}

// release releases a lock and insists on the confirmation.
func (e *env) release(lock *holdfast.Lock) {
	e.Helper()
	if err := lock.Release(e.soon()); err != nil {
		e.broken("Release of a live lock returns nil once the engine has confirmed", "%v", err)
	}
}

// close closes a client in the middle of a case.
func (e *env) close(c *Client) {
	e.Helper()
	if err := c.Close(e.within(e.patience())); err != nil {
		e.Fatalf("%s: Close: %v", e.rule, err)
	}
}

// inspect asks who holds the key of the case.
func (e *env) inspect(c *Client) holdfast.Info {
	e.Helper()
	info, err := c.Inspect(e.soon(), e.key)
	if err != nil {
		e.Fatalf("%s: Inspect: %v", e.rule, err)
	}
	return info
}

// needs skips a case for which the harness lacks a fault.
func (e *env) needs(has bool, fault string) {
	e.Helper()
	if !has {
		e.Skipf("%s: this harness cannot %s", e.rule, fault)
	}
}

// handsOver ends a lock while b waits for its key, and insists that the holder knew first. It asks Err, which looks at the
// clock: when a process goes on after a while in which it did not run, it may be granted the key before it closes Done.
func (e *env) handsOver(lock *holdfast.Lock, b *Client, end func(), granted, first string) *holdfast.Lock {
	e.Helper()
	known := make(chan bool, 1)
	w := e.waitKey(b, e.key, func(*holdfast.Lock) { known <- lock.Err() != nil }).waits(b, e.key, 1)
	end()
	next := w.granted(e.handOver(), granted)
	if !<-known {
		e.refuted(first, "another client was granted the key while the old holder's lock was live; its Deadline is %v from now",
			time.Until(lock.Deadline()))
	}
	e.newer(next.Token(), lock.Token(), "the next grant has a greater token")
	return next
}

// receive returns what a channel delivers within d.
func receive[T any](e *env, ch <-chan T, d time.Duration, rule, otherwise string) T {
	e.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(d):
		e.broken(rule, "%s after %v", otherwise, d)
	}
	panic("not reached")
}

// keys are keys of the case, for AcquireAny.
func (e *env) keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%sany%d", e.prefix, i)
	}
	return keys
}

// takes insists that TryAcquire gets a key.
func (e *env) takes(c *Client, key, rule string, opts ...holdfast.Option) *holdfast.Lock {
	e.Helper()
	lock, err := c.TryAcquire(e.soon(), key, opts...)
	if err != nil {
		e.broken(rule, "TryAcquire(%q): %v", key, err)
	}
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
	e.Helper()
	lock, err := c.TryAcquire(e.soon(), key, opts...)
	if err == nil {
		if other := e.live(key); other != nil && len(opts) == 0 { // others may be lost if the machine stops, but not this one
			e.refuted(rule, "TryAcquire(%q) was granted, token %v, while the lock with token %v was live", key, lock.Token(), other.Token())
		}
		e.broken(rule, "TryAcquire(%q) was granted, token %v", key, lock.Token())
	}
	var held *holdfast.HeldError
	if !errors.As(err, &held) || !errors.Is(err, holdfast.ErrHeld) || held.Key != key {
		e.broken("TryAcquire of a key that is held fails with a HeldError for it", "TryAcquire(%q): %v", key, err)
	}
	return held
}

// isLive insists that a lock is live, by its own account and by the engine's.
func (e *env) isLive(lock *holdfast.Lock, rule string) {
	e.Helper()
	if err := lock.Err(); err != nil {
		e.broken(rule, "Err: %v", err)
	}
	if isClosed(lock.Done()) {
		e.broken(rule, "Done is closed")
	}
	if err := lock.Verify(e.soon()); err != nil {
		e.broken(rule, "Verify: %v", err)
	}
}

// ends insists that a lock ends within d, for one of the causes.
func (e *env) ends(lock *holdfast.Lock, d time.Duration, rule string, causes ...error) {
	e.Helper()
	if !e.closes(lock.Done(), d) {
		e.broken(rule, "Done is open after %v more; Err: %v", d, lock.Err())
	}
	e.endedBy(lock, rule, causes...)
}

// endedBy insists that a lock has ended for one of the causes, and no other.
func (e *env) endedBy(lock *holdfast.Lock, rule string, causes ...error) {
	e.Helper()
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

// leavesNothing insists that within d the engine stores nothing for a key.
func (e *env) leavesNothing(key string, d time.Duration, rule string) {
	e.Helper()
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

// settle gives late events time to arrive before a case asserts that there are none.
func (e *env) settle() { time.Sleep(e.engine.Lease / 50) }
