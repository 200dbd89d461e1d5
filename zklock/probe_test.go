package zklock_test

import (
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
