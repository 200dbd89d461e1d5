package locktest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// env is what a case works with.
type env struct {
	testing.TB
	driver.Features // of the first client

	first   *Client // until client returns it
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

// patience bounds what must happen in the end, after the end of a lease and a few tries.
func (e *env) patience() time.Duration { return 2*e.engine.Lease + e.engine.Late + e.engine.Soon }

// handOver bounds the time from a holder's last request to the next grant.
func (e *env) handOver() time.Duration { return e.engine.Lease + e.engine.Late }

// client connects a client; it is closed when the case ends.
func (e *env) client() *Client {
	if c := e.first; c != nil {
		e.first = nil
		return e.stalling(c)
	}
	return e.clientWith(ClientOptions{})
}

// clients connects n clients.
func (e *env) clients(n int) (all []*Client) {
	for range n {
		all = append(all, e.client())
	}
	return all
}

func (e *env) clientWith(o ClientOptions) *Client {
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
	return e.stalling(c)
}

// stalling makes Cut stall the client, if the case says so.
func (e *env) stalling(c *Client) *Client {
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

// brokenIf fails the case if what it saw breaks a rule.
func (e *env) brokenIf(bad bool, rule, format string, args ...any) {
	e.Helper()
	if bad {
		e.broken(rule, format, args...)
	}
}

// noError insists that a call has succeeded. If given, what names the call.
func (e *env) noError(err error, rule string, what ...string) {
	e.Helper()
	e.brokenIf(err != nil, rule, "%s%v", strings.Join(append(what, ""), ": "), err)
}

// failsWith insists on an error that matches want.
func (e *env) failsWith(err, want error, rule string, what ...string) {
	e.Helper()
	e.brokenIf(!errors.Is(err, want), rule, "%s%v, want %v", strings.Join(append(what, ""), ": "), err, want)
}

// mayFail insists that a call has succeeded or failed with an error that matches allowed.
func (e *env) mayFail(err, allowed error, rule string) {
	e.Helper()
	e.brokenIf(err != nil && !errors.Is(err, allowed), rule, "%v", err)
}

// breach describes a rule that does not hold.
func (e *env) breach(rule, format string, args ...any) string {
	return fmt.Sprintf("%s broken: %s:\n\t%s\n\tat %s", e.rule, rule, fmt.Sprintf(format, args...), lines())
}

// lines are the lines of the suite that led to a failure, the case's first.
func lines() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	var found []string
	for {
		frame, more := frames.Next()
		name := filepath.Base(frame.File)
		if !more || !strings.Contains(frame.Function, "/locktest.") || name == "run.go" {
			break
		}
		if name != "env.go" {
			found = append(found, fmt.Sprint(name, ":", frame.Line))
		}
	}
	slices.Reverse(found)
	return strings.Join(found, ", ")
}

// hold acquires the key of the case, which is free.
func (e *env) hold(c *Client, opts ...holdfast.Option) *holdfast.Lock {
	return e.holdKey(c, e.key, opts...)
}

// held returns two clients, of which the first holds the key of the case.
func (e *env) held(opts ...holdfast.Option) (holder, other *Client, lock *holdfast.Lock) {
	holder, other = e.client(), e.client()
	return holder, other, e.hold(holder, opts...)
}

func (e *env) holdKey(c *Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	return e.holdWithin(e.engine.Soon, c, key, opts...)
}

func (e *env) holdWithin(d time.Duration, c *Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	lock, err := c.Acquire(e.within(d), key, opts...)
	e.brokenIf(err != nil, "a key that is free, or becomes free, is granted", "Acquire(%q): %v", key, err)
	return e.granted(key, lock)
}

// watches waits until a client would notice a reclaim.
func (e *env) watches(c *Client) {
	if c.Watches != nil {
		c.Watches()
	}
}

// release releases locks and insists on the confirmation.
func (e *env) release(locks ...*holdfast.Lock) {
	for _, lock := range locks {
		e.noError(lock.Release(e.soon()), "Release of a live lock returns nil once the engine has confirmed")
	}
}

// lets releases a lock on a goroutine that is not the case's, and reports whether that was confirmed.
func (e *env) lets(lock *holdfast.Lock) bool {
	err := lock.Release(e.soon())
	if err != nil {
		e.Errorf("%s: Release: %v", e.rule, err)
	}
	return err == nil
}

// done is a context that has ended.
func (e *env) done() context.Context {
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	return ctx
}

// close closes a client in the middle of a case.
func (e *env) close(c *Client) {
	e.noError(c.Close(e.within(e.patience())), ruleAnswers, "Close")
}

// inspect returns the state of the key of the case.
func (e *env) inspect(c *Client) holdfast.Info { return e.inspectKey(c, e.key) }

func (e *env) inspectKey(c *Client, key string) holdfast.Info {
	info, err := c.Inspect(e.soon(), key)
	e.noError(err, ruleAnswers, "Inspect")
	return info
}

// dies cuts a client off, and ends its session at once if the harness can.
func (c *Client) dies() {
	c.Cut()
	if c.Expire != nil {
		c.Expire()
	}
}

// needs skips a case for which the harness lacks a fault.
func (e *env) needs(has bool, fault string) {
	if !has {
		e.Skipf("%s: this harness cannot %s", e.rule, fault)
	}
}

// handsOver ends a lock while b waits for its key, and insists that the holder knew first. It asks Err, which looks at the
// clock: when a process goes on after a while in which it did not run, it may be granted the key before it closes Done.
func (e *env) handsOver(lock *holdfast.Lock, b *Client, end func(), granted, first string) *holdfast.Lock {
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
	select {
	case v := <-ch:
		return v
	case <-time.After(d):
		e.broken(rule, "%s after %v", otherwise, d)
	}
	panic("not reached")
}

// later makes a call on a goroutine.
func later(call func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	return result
}

// result is that of a call on a goroutine, which must return within d.
func (e *env) result(ch <-chan error, d time.Duration, rule string) error {
	return receive(e, ch, d, rule, "the call has not returned")
}

// keys are keys of the case, for AcquireAny.
func (e *env) keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%sany%d", e.prefix, i)
	}
	return keys
}
