package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// promptly is how soon a call must return after its ctx has ended: long before the client gives up a silent connection,
// with a session timeout of longest.
const promptly = 10 * time.Second

// checkGivenUp fails the test unless an Acquire whose ctx was cancelled returns at once with the errors that G5 demands.
func checkGivenUp(t *testing.T, got <-chan outcome, want error) {
	t.Helper()
	select {
	case o := <-got:
		if !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, want) {
			t.Errorf("error is %v, want it to match %v and %v", o.err, context.Canceled, want)
		}
	case <-time.After(promptly):
		verdict.Fatalf(t, "Acquire does not return when its ctx ends")
	}
}

// G5, at every step of Acquire: the request or the reply is delayed, ctx ends, and Acquire returns at once. Once the step
// completes, nothing stays behind. Tests that calls do not wait for go-zookeeper, and that pending steps are adopted and
// undone.
func TestCancelAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range []struct {
		name  string
		op    faultproxy.Op
		fresh bool // without a znode for the lock
		other bool // somebody else holds the lock
		try   bool
		share bool // the call is for a shared lock
		lost  bool // the reply to the first create, so that the contender reads its own node before the grant
		proof bool // the contender has waited for long, and proves its session before the grant
		want  error
	}{
		{name: "create", op: faultproxy.OpCreate, want: holdfast.ErrDisconnected},
		{name: "create without parent", op: faultproxy.OpCreate, fresh: true, want: holdfast.ErrDisconnected},
		{name: "create container", op: faultproxy.OpCreateContainer, fresh: true, want: holdfast.ErrDisconnected},
		{name: "list", op: faultproxy.OpGetChildren2, want: holdfast.ErrDisconnected},
		{name: "own read", op: faultproxy.OpGetData, lost: true, want: holdfast.ErrDisconnected},
		{name: "create behind another", op: faultproxy.OpCreate, other: true, want: holdfast.ErrDisconnected},
		{name: "list behind another", op: faultproxy.OpGetChildren2, other: true, want: holdfast.ErrDisconnected},
		{name: "first read behind another", op: faultproxy.OpGetData, other: true, want: holdfast.ErrHeld},
		{name: "proof", op: faultproxy.OpMulti, other: true, proof: true, want: holdfast.ErrDisconnected},
		{name: "probe of a try", op: faultproxy.OpGetChildren2, try: true, want: holdfast.ErrDisconnected},
		{name: "create of a try", op: faultproxy.OpCreate, try: true, want: holdfast.ErrDisconnected},
		{name: "create of a reader", op: faultproxy.OpCreate, share: true, other: true, want: holdfast.ErrDisconnected},
		{name: "first read of a reader", op: faultproxy.OpGetData, share: true, other: true, want: holdfast.ErrHeld},
		{name: "holder of a try", op: faultproxy.OpGetData, try: true, other: true, want: holdfast.ErrDisconnected},
	} {
		for direction, hold := range holdings {
			t.Run(step.name+"/"+direction, func(t *testing.T) {
				session := longest
				if step.proof {
					session = 8 * time.Second
				}
				play(t, &zklock.Options{SessionTimeout: session}, func(t *testing.T, s *scene) {
					if !step.fresh {
						s.prepare(t)
					}
					var holder *holdfast.Lock
					if step.other {
						holder = take(t, s.other(t), s.key)
					}
					var lost <-chan faultproxy.Frame
					if step.lost {
						lost = s.proxy.LoseReply(faultproxy.OpCreate, s.parent)
					}
					held, pass := hold(s.proxy, step.op, s.parent)
					defer pass()
					ctx, cancel := context.WithCancel(limited(t))
					defer cancel()
					acquire := s.client.Acquire
					if step.try {
						acquire = func(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
							return s.client.TryAcquire(ctx, key, opts...)
						}
					}
					var opts []holdfast.Option
					if step.share {
						opts = append(opts, holdfast.WithShared())
					}
					got := async(func() outcome {
						lock, err := acquire(ctx, s.key, opts...)
						return outcome{lock, err}
					})
					if step.lost {
						receive(t, "loss", lost)
					}
					if step.proof {
						holds(t, s.conn, s.parent, 2)
						time.Sleep(s.client.SessionTimeout()) // its last write proves nothing any more
						release(t, holder)
						holder = nil
					}
					receive(t, "the step", held)
					cancel()
					checkGivenUp(t, got, step.want)
					pass()
					if holder != nil {
						holds(t, s.conn, s.parent, 1)
						release(t, holder)
					}
					// The client works, and the lock is free.
					again := s.take(t)
					holds(t, s.conn, s.parent, 1)
					release(t, again)
					s.clean(t)
				})
			})
		}
	}
}

// G5, Z1. ctx ends while the outcome of a create is unknown. Tests the cleaner that syncs, lists and deletes by guid.
func TestCancelWithCreationLost(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		for direction, lose := range losses {
			t.Run(name+"/"+direction, func(t *testing.T) {
				play(t, &zklock.Options{Names: form}, func(t *testing.T, s *scene) {
					ctx, cancel := context.WithCancel(limited(t))
					defer cancel()
					_, got, reconnect := s.loseCreation(ctx, t, lose)
					if direction == "reply" {
						holds(t, s.conn, s.parent, 1)
					}
					cancel()
					checkGivenUp(t, got, holdfast.ErrDisconnected)
					reconnect()
					s.clean(t)
				})
			})
		}
	}
}

// G5, Z1. As above, but the connection breaks after ctx has ended, while the background waits for the create.
func TestCancelThenCreationLost(t *testing.T) {
	play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
		s.prepare(t)
		held, pass := s.proxy.HoldReply(faultproxy.OpCreate, s.parent)
		defer pass()
		ctx, cancel := context.WithCancel(limited(t))
		defer cancel()
		got := s.acquiring(ctx)
		receive(t, "reply", held)
		holds(t, s.conn, s.parent, 1)
		cancel()
		checkGivenUp(t, got, holdfast.ErrDisconnected)
		s.proxy.Drop()
		s.clean(t)
	})
}
