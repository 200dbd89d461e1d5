package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// A faultStep is one request of a call that a fault strikes.
type faultStep struct {
	op     faultproxy.Op
	ahead  []holdfast.Option                           // how another client holds the key meanwhile; nil: it is free
	beside bool                                        // the other client shares the key with the call
	fresh  bool                                        // the parent does not exist
	behind bool                                        // the call has waited for a session timeout, and the holder has just released the key
	real   bool                                        // also on a real server
	done   func(holder *holdfast.Lock) <-chan struct{} // how the call notifies the holder
	call   faultCall
}

// A faultCall prepares a call. The call returns the lock that it has been granted or has written to.
type faultCall func(ctx context.Context, t *testing.T, s *scene) func() (*holdfast.Lock, error)

func acquires(opts ...holdfast.Option) faultCall {
	return func(ctx context.Context, _ *testing.T, s *scene) func() (*holdfast.Lock, error) {
		return func() (*holdfast.Lock, error) { return s.client.Acquire(ctx, s.key, opts...) }
	}
}

func tries(ctx context.Context, _ *testing.T, s *scene) func() (*holdfast.Lock, error) {
	return func() (*holdfast.Lock, error) { return s.client.TryAcquire(ctx, s.key) }
}

func writes(ctx context.Context, t *testing.T, s *scene) func() (*holdfast.Lock, error) {
	lock := s.take(t, holdfast.WithData([]byte("old")))
	return func() (*holdfast.Lock, error) { return lock, lock.SetData(ctx, []byte("new")) }
}

func releases(ctx context.Context, t *testing.T, s *scene) func() (*holdfast.Lock, error) {
	lock := s.take(t)
	return func() (*holdfast.Lock, error) { return nil, lock.Release(ctx) }
}

// about returns calls that concern the present grant.
func about(call func(*zklock.Client, context.Context, holdfast.Info) error) faultCall {
	return func(ctx context.Context, t *testing.T, s *scene) func() (*holdfast.Lock, error) {
		info, err := s.client.Inspect(limited(t), s.key)
		must(t, err)
		return func() (*holdfast.Lock, error) { return nil, call(s.client, ctx, info) }
	}
}

var (
	alone = []holdfast.Option{}
	share = []holdfast.Option{holdfast.WithShared()}
	limit = []holdfast.Option{holdfast.WithLimit(2)}
)

var faultSteps = map[string]faultStep{
	"create":                  {op: faultproxy.OpCreate, real: true, call: acquires()},
	"create without parent":   {op: faultproxy.OpCreate, fresh: true, call: acquires()},
	"create the parent":       {op: faultproxy.OpCreateContainer, fresh: true, call: acquires()},
	"create behind another":   {op: faultproxy.OpCreate, ahead: alone, call: acquires()},
	"create of a reader":      {op: faultproxy.OpCreate, ahead: share, beside: true, call: acquires(share...)},
	"create of a permit":      {op: faultproxy.OpCreate, ahead: limit, beside: true, call: acquires(limit...)},
	"create of a try":         {op: faultproxy.OpCreate, call: tries},
	"list":                    {op: faultproxy.OpGetChildren2, call: acquires()},
	"list behind another":     {op: faultproxy.OpGetChildren2, ahead: alone, call: acquires()},
	"watch":                   {op: faultproxy.OpGetData, ahead: alone, real: true, call: acquires()},
	"watch of a reader":       {op: faultproxy.OpGetData, ahead: alone, call: acquires(share...)},
	"proof after a long wait": {op: faultproxy.OpMulti, ahead: alone, behind: true, call: acquires()},
	"write of data":           {op: faultproxy.OpSetData, call: writes},
	"release":                 {op: faultproxy.OpDelete, real: true, call: releases},
	"break":                   {op: faultproxy.OpDelete, ahead: alone, done: (*holdfast.Lock).Done, call: about((*zklock.Client).Break)},
	"ask":                     {op: faultproxy.OpSetData, ahead: alone, done: (*holdfast.Lock).Asked, call: about((*zklock.Client).Ask)},
}

// promptly is how soon a call must return after its ctx has ended: long before the client gives up a silent connection,
// with a session timeout of longest.
const promptly = 10 * time.Second

// TestFaults strikes each step of each call with each fault. A call whose frame is lost, or whose session expires, succeeds
// where it can; a call whose ctx ends returns at once. Nothing stays behind, and tokens rise (G3, G5, G6, G10, G16).
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, step := range faultSteps {
		for _, fault := range []string{"lost", "late", "cut", "expired"} {
			for direction := range losses {
				t.Run(fmt.Sprintf("%s/%s/%s", name, direction, fault), func(t *testing.T) {
					opts, run := options(), play
					switch {
					case step.behind:
						opts.SessionTimeout = 8 * time.Second
					case fault == "late":
						opts.SessionTimeout = longest
					case step.real:
						run = playOnBoth
					}
					run(t, opts, func(t *testing.T, s *scene) { step.strike(t, s, fault, direction) })
				})
			}
		}
	}
}

func (step faultStep) strike(t *testing.T, s *scene, fault, direction string) {
	if !step.fresh {
		s.prepare(t)
	}
	var holder *holdfast.Lock
	if step.ahead != nil {
		holder = take(t, s.other(t), s.key, step.ahead...)
	}
	ctx, giveUp := context.WithCancel(limited(t))
	defer giveUp()
	call := step.call(ctx, t, s)
	s.quiet(t)
	begin := func() <-chan outcome {
		return async(func() outcome {
			lock, err := call()
			return outcome{lock, err}
		})
	}
	var got <-chan outcome
	if step.behind {
		got = begin()
		holds(t, s.conn, s.parent, 2)
		time.Sleep(s.client.SessionTimeout()) // its last write proves nothing any more
	}
	var hit <-chan faultproxy.Frame
	pass, reconnect := func() {}, func() {}
	if fault == "late" {
		hit, pass = holdings[direction](s.proxy, step.op, s.parent)
	} else {
		hit = losses[direction](s.proxy, step.op, s.parent)
	}
	defer pass()
	var reconnecting <-chan faultproxy.Frame
	if fault == "cut" || fault == "expired" {
		reconnecting, reconnect = s.proxy.HoldRequest(faultproxy.OpConnect, "")
	}
	defer reconnect()
	if step.behind {
		release(t, holder)
		holder = nil
	} else {
		got = begin()
	}
	receive(t, "the step", hit)
	if reconnecting != nil {
		receive(t, "reconnection", reconnecting)
	}
	if fault == "expired" {
		s.expire()
	}
	if fault == "late" || fault == "cut" {
		giveUp()
		step.checkGivenUp(t, got)
	}
	reconnect()
	pass()
	last := holder
	if fault == "lost" || fault == "expired" {
		last = step.checkDone(t, s, got, holder, fault == "expired")
	}
	if holder != nil {
		if err := holder.Release(limited(t)); err != nil && !errors.Is(err, holdfast.ErrReleased) && !errors.Is(err, holdfast.ErrBroken) {
			t.Error(err)
		}
	}
	step.checkNothingLeft(t, s, last)
}

// checkGivenUp fails the test unless a call whose ctx was cancelled returns at once with the error that G5 demands.
func (step faultStep) checkGivenUp(t *testing.T, got <-chan outcome) {
	t.Helper()
	select {
	case o := <-got:
		pending := errors.Is(o.err, holdfast.ErrReleasePending)
		if !errors.Is(o.err, context.Canceled) || !pending && !errors.Is(o.err, holdfast.ErrDisconnected) && !errors.Is(o.err, holdfast.ErrHeld) {
			t.Errorf("error is %v, want it to match %v and a cause", o.err, context.Canceled)
		}
	case <-time.After(promptly):
		verdict.Fatalf(t, "the call does not return when its ctx ends")
	}
}

// checkDone checks the result of a call that was not given up, and returns the latest holder.
func (step faultStep) checkDone(t *testing.T, s *scene, got <-chan outcome, holder *holdfast.Lock, expired bool) *holdfast.Lock {
	t.Helper()
	if holder != nil && !step.beside && step.done == nil {
		silent(t, "grant beside the holder", got)
		release(t, holder)
	}
	o := receive(t, "the call returns", got)
	if step.done != nil && o.err == nil {
		receive(t, "the holder hears of it", step.done(holder))
	}
	switch lost := errors.Is(o.err, holdfast.ErrLost) || errors.Is(o.err, holdfast.ErrSessionExpired); {
	case o.err != nil && !(expired && lost):
		t.Errorf("the call returns %v", o.err)
	case o.lock == nil || o.err != nil:
		return holder
	}
	must(t, o.lock.Verify(limited(t)))
	_, stat, err := s.conn.Get(nodeOf(t, s.client, o.lock))
	must(t, err)
	if uint64(stat.Czxid) != uint64(o.lock.Token()) || stat.EphemeralOwner != s.client.Conn().SessionID() {
		t.Errorf("token %v, session %#x; the node is %+v", o.lock.Token(), s.client.Conn().SessionID(), stat)
	}
	if step.op == faultproxy.OpSetData {
		if info, err := s.client.Inspect(limited(t), s.key); err != nil || string(info.Data) != "new" || stat.Version != 1 {
			t.Errorf("the data is %q after %d writes, %v", info.Data, stat.Version, err)
		}
	}
	release(t, o.lock)
	if !errors.Is(o.lock.Err(), holdfast.ErrReleased) {
		t.Errorf("Err is %v", o.lock.Err())
	}
	return o.lock
}

// checkNothingLeft fails the test unless the key is free for every client, with higher tokens.
func (step faultStep) checkNothingLeft(t *testing.T, s *scene, last *holdfast.Lock) {
	t.Helper()
	if step.op == faultproxy.OpSetData && step.done == nil {
		_ = s.client.Close(limited(t)) // it may still hold the lock
	} else {
		release(t, s.take(t))
	}
	again := take(t, s.other(t), s.key)
	if last != nil && again.Token() <= last.Token() {
		t.Errorf("token %v after %v", again.Token(), last.Token())
	}
	release(t, again)
	s.clean(t)
}
