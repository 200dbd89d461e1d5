package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// A server that lags behind the others shows a holder that has released the lock: a try is
// refused only if the lock was held after it began.
func TestTryAtAServerThatLags(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"exclusive": nil, "shared": {holdfast.WithShared()}, "limited": {holdfast.WithLimit(1)}} {
		for from := range 3 {
			for at := range 3 {
				synctest.Test(t, func(t *testing.T) {
					e := zkfake.New(zkfake.Config{
						Members: 3,
						Latency: func() time.Duration { return time.Millisecond },
						Delay:   func() time.Duration { return 20 * time.Millisecond },
					})
					t.Cleanup(e.Close)
					holder, other := dialMember(t, e, from, zklock.Options{}), dialMember(t, e, at, zklock.Options{})
					held := opts
					if name == "shared" {
						held = nil
					}
					lock, err := holder.Acquire(inTime(t), "k", held...)
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					if err := lock.Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
					if _, err := other.TryAcquire(inTime(t), "k", opts...); err != nil {
						t.Errorf("%s, released at server %d, tried at server %d: %v", name, from, at, err)
					}
				})
			}
		}
	}
}

// A try whose ctx ends while its server catches up says who was seen to hold the key.
func TestTryThatIsCutShort(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"exclusive": nil, "shared": {holdfast.WithShared()}, "limited": {holdfast.WithLimit(1)}} {
		withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
			holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
			held, looks := opts, 5*time.Millisecond
			if name == "shared" {
				held = nil
			}
			if _, err := holder.Acquire(t.Context(), "k", held...); err != nil {
				t.Fatal(err)
			}
			for cut := time.Millisecond; cut < 25*time.Millisecond; cut += time.Millisecond / 2 {
				ctx, cancel := context.WithTimeout(t.Context(), cut)
				_, err := other.TryAcquire(ctx, "k", opts...)
				cancel()
				seen := cut > looks // a round trip of 2 ms for each list and each read
				if !errors.Is(err, holdfast.ErrHeld) && (seen || !errors.Is(err, holdfast.ErrDisconnected)) {
					t.Errorf("%s, after %v: %v", name, cut, err)
				}
			}
		})
	}
}

// A try whose server does not catch up says in the end who was seen to hold the key.
func TestTryWhileTheServerLags(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, holder, "k")
		other.Throttle(func(kind int32) bool { return kind == opSync })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := other.TryAcquire(ctx, "k"); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("while syncs are throttled: %v", err)
		}
	})
}
