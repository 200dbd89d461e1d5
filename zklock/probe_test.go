package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
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
			switch name {
			case "shared":
				held = nil
			case "limited":
				looks *= 3 // the permits are listed, and who has them is read
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

// A try whose server does not catch up says in the end who was seen to hold the key, and one that was cut short does not say that the
// key is in use as something else: that may be long over.
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
	for _, acquire := range []func(*wired, context.Context) error{
		func(c *wired, ctx context.Context) error {
			_, err := c.TryAcquire(ctx, "k", holdfast.WithLimit(3))
			return err
		},
		func(c *wired, ctx context.Context) error {
			_, err := c.Acquire(ctx, "k", holdfast.WithLimit(3))
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			const late = 40 * time.Millisecond
			e := zkfake.New(zkfake.Config{
				Members: 3, Latency: func() time.Duration { return time.Millisecond }, Delay: func() time.Duration { return late },
			})
			t.Cleanup(e.Close)
			l := e.Leader()
			holder, other := dialMember(t, e, l, zklock.Options{}), dialMember(t, e, (l+1)%3, zklock.Options{})
			lock, err := holder.Acquire(inTime(t), "k", holdfast.WithLimit(2))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if err := lock.Release(inTime(t)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), late-10*time.Millisecond)
			defer cancel()
			if err := acquire(other, ctx); errors.Is(err, driver.ErrMismatch) {
				t.Errorf("the key was free: %v", err)
			}
		})
	}
}

// Z79. Where Curator has a semaphore, of which no limit is known, a try names the same znode as a call that waits: that with the leases.
func TestTryWhereCuratorHasASemaphore(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "another") // makes the root
		createNode(t, other, "k", "", 0)
		createNode(t, other, "k/leases", "", 0)
		createNode(t, other, "k/leases/_c_0-lease-", "", zk.FlagEphemeral|zk.FlagSequence)
		_, tried := client.TryAcquire(inTime(t), "k")
		_, waited := client.Acquire(inTime(t), "k")
		for _, err := range []error{tried, waited} {
			var names *zklock.NamesError
			if !errors.As(err, &names) || names.Node != virtualRoot+"/k/leases" {
				t.Errorf("%v, want a NamesError for what has the leases", err)
			}
		}
	})
}
