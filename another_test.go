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

// R17. The loss of another lock ends a call in that lock's context, but not the lock that the call is about.
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
				if !errors.Is(err, context.Canceled) {
					t.Errorf("it returned %v", err)
				}
				mustClose(t, c)
			})
		})
	}
}
