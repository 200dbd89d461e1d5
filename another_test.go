package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// R17. A call about one lock, in the context of another, which is lost meanwhile: that says nothing of the first.
func TestCallsInAnotherLocksContext(t *testing.T) {
	for name, call := range map[string]func(k *holdfast.Lock, ctx context.Context) error{
		"Verify": (*holdfast.Lock).Verify,
		"SetData": func(k *holdfast.Lock, ctx context.Context) error {
			go func() { _ = k.SetData(context.Background(), []byte("1")) }()
			synctest.Wait()
			return k.SetData(ctx, []byte("2")) // waits for the first, until ctx ends
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := &engine{verify: hang}
				b.setData = func(context.Context, []byte) error { time.Sleep(3 * time.Second); return nil }
				lose := b.losing()
				c := b.open(t, driver.Config{})
				other := acquire(t, c, "other")
				loseOther := *lose
				lock := acquire(t, c, "k")
				ctx, cancel := other.Context(t.Context())
				defer cancel()
				time.AfterFunc(time.Second, func() { loseOther(holdfast.ErrBroken) })
				err := call(lock, ctx)
				if lock.Err() != nil {
					t.Errorf("the lock has ended: %v", lock.Err())
				}
				if !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrBroken) {
					t.Errorf("it returned %v", err)
				}
				mustClose(t, c)
			})
		})
	}
}

// R17. Nor does it if the other lock has ended before the call, however.
func TestCallsInTheContextOfALockThatHasEnded(t *testing.T) {
	calls := map[string]func(k *holdfast.Lock, ctx context.Context) error{
		"Verify":  (*holdfast.Lock).Verify,
		"SetData": func(k *holdfast.Lock, ctx context.Context) error { return k.SetData(ctx, nil) },
		"Release": (*holdfast.Lock).Release,
	}
	for name, call := range calls {
		for why, end := range map[error]func(other *holdfast.Lock, lose func(error)){
			holdfast.ErrLost:     func(_ *holdfast.Lock, lose func(error)) { lose(holdfast.ErrBroken) },
			holdfast.ErrReleased: func(other *holdfast.Lock, _ func(error)) { _ = other.Release(context.Background()) },
			holdfast.ErrTTLExpired: func(other *holdfast.Lock, _ func(error)) {
				_ = other.Extend(time.Nanosecond)
				time.Sleep(time.Nanosecond)
			},
		} {
			t.Run(name+", "+why.Error(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					b := &engine{}
					lose := b.losing()
					c := b.open(t, driver.Config{})
					other := acquire(t, c, "other")
					ctx, cancel := other.Context(t.Context())
					defer cancel()
					end(other, *lose)
					if cause := context.Cause(ctx); !errors.Is(cause, why) {
						t.Fatalf("ctx ended for %v", cause)
					}
					lock := acquire(t, c, "k")
					synctest.Wait() // the other has been given back
					b.release = func(context.Context) error { time.Sleep(time.Second); return nil }
					err := call(lock, ctx)
					if !errors.Is(err, context.Canceled) || errors.Is(err, why) {
						t.Errorf("it returned %v", err)
					}
					mustClose(t, c)
				})
			})
		}
	}
}

// R17. Close in the context of a lock of another client, which was lost: what was not confirmed is pending, and was not lost.
func TestCloseInTheContextOfALostLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		lose := b.losing()
		other := b.open(t, driver.Config{})
		ctx, cancel := acquire(t, other, "other").Context(t.Context())
		defer cancel()
		(*lose)(holdfast.ErrBroken)
		silent := &engine{release: func(ctx context.Context) error {
			<-ctx.Done()
			return driver.ContextError(ctx)
		}}
		c := silent.open(t, driver.Config{})
		lock := acquire(t, c, "k")
		for name, err := range map[string]error{"Close": c.Close(ctx), "Release": lock.Release(t.Context())} {
			if !errors.Is(err, holdfast.ErrReleasePending) || errors.Is(err, holdfast.ErrLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		mustClose(t, other)
	})
}

// Verify in a context that has ended with the lock, or with one of the locks, tells of that end.
func TestVerifyInTheContextOfALostLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		lose := b.losing()
		c := b.open(t, driver.Config{})
		locks := mustAll(t, c, three)
		ctx, cancel := locks.Context(t.Context())
		defer cancel()
		(*lose)(holdfast.ErrBroken) // the last of them
		if err := locks.Verify(ctx); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%v", err)
		}
		mustClose(t, c)
	})
}
