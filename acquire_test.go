package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A backend may well wrap ctx's error itself; what it adds is not lost.
func TestAcquireTellsWhatItWaitedFor(t *testing.T) {
	for name, wrap := range map[string]func(context.Context) error{
		"alone":    func(context.Context) error { return holdfast.ErrDisconnected },
		"with ctx": func(ctx context.Context) error { return fmt.Errorf("%w: %w", holdfast.ErrDisconnected, ctx.Err()) },
		"as cause": func(ctx context.Context) error {
			return fmt.Errorf("%w: %w", holdfast.ErrDisconnected, context.Cause(ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := (&backend{acquire: func(ctx context.Context, _ *holdfast.Request) (holdfast.Grant, error) {
				<-ctx.Done()
				return holdfast.Grant{}, wrap(ctx)
			}}).open(t, holdfast.Config{})
			cause := errors.New("the user went home")
			for _, cause := range []error{nil, cause} {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Millisecond, func() { cancel(cause) })
				_, err := l.Acquire(ctx, "k")
				if !errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrDisconnected) {
					t.Errorf("cause %v: got %v, want context.Canceled and ErrDisconnected", cause, err)
				}
				if cause != nil && !errors.Is(err, cause) {
					t.Errorf("got %v, want the cause %v in it", err, cause)
				}
			}
		})
	}
}

// "None is free" and "the engine refused" are different answers.
func TestAcquireAnyFailureIsNotHeld(t *testing.T) {
	l := (&backend{acquire: func(_ context.Context, req *holdfast.Request) (holdfast.Grant, error) {
		if req.Key == "held" {
			return holdfast.Grant{}, &holdfast.HeldError{Key: req.Key}
		}
		return holdfast.Grant{}, holdfast.ErrDenied
	}}).open(t, holdfast.Config{})
	_, err := l.AcquireAny(t.Context(), []string{"held", "denied"})
	if !errors.Is(err, holdfast.ErrDenied) {
		t.Errorf("got %v, want ErrDenied", err)
	}
	if errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("%v matches ErrHeld, as if all keys were held", err)
	}
}

// What an earlier pass has found is not forgotten when ctx ends in a later one.
func TestAcquireAnyTellsWhatItWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	l := (&backend{acquire: func(ctx context.Context, req *holdfast.Request) (holdfast.Grant, error) {
		if calls++; calls <= 2 {
			return holdfast.Grant{}, &holdfast.HeldError{Key: req.Key}
		}
		cancel()
		return holdfast.Grant{}, fmt.Errorf("%w: %w", holdfast.ErrDisconnected, ctx.Err())
	}}).open(t, holdfast.Config{})
	_, err := l.AcquireAny(ctx, []string{"a", "b"}, holdfast.WithRetry(holdfast.Retry{Initial: time.Millisecond}))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("got %v, want context.Canceled and ErrHeld", err)
	}
}

// A grant that is broken before it is handed out is not seen half made by a
// call that asks what the client holds. The race detector is the judge.
func TestGrantOverBeforeItIsHandedOut(t *testing.T) {
	b := &backend{}
	b.acquire = func(_ context.Context, req *holdfast.Request) (holdfast.Grant, error) {
		if !req.Reclaim {
			req.Lose(holdfast.ErrReclaimed)
		}
		return b.grant(), nil
	}
	l := b.open(t, holdfast.Config{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				if _, err := l.Acquire(t.Context(), "k", holdfast.WithOwner("me")); !errors.Is(err, holdfast.ErrReclaimed) {
					t.Errorf("got %v, want ErrReclaimed", err)
					return
				}
			}
		})
		wg.Go(func() {
			for range 2000 {
				lock, err := l.Acquire(t.Context(), "k", holdfast.WithOwner("me"), holdfast.WithReclaim())
				if err == nil {
					lock.Release(t.Context())
				}
			}
		})
	}
	wg.Wait()
}
