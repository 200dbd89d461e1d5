package memlock_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/memlock"
)

// A place that was reclaimed or broken just as it was granted is not handed out.
func TestReclaim_GrantNotDelivered_ErrReclaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewStore()
		fake := &drivertest.Clock{}
		a := newClient(t, s)
		b := newClientOn(t, fake, s)
		lock := hold(t, a, "k")
		failed := make(chan error, 1)
		go func() {
			_, err := b.Acquire(t.Context(), "k", holdfast.WithOwner("me"))
			failed <- err
		}()
		synctest.Wait()
		fake.Pause() // b is granted the key and does not hear of it
		lock.Release(t.Context())
		hold(t, a, "k", holdfast.WithOwner("me"), holdfast.WithReclaim())
		fake.Resume()
		if err := <-failed; !errors.Is(err, holdfast.ErrReclaimed) {
			t.Errorf("got %v, want ErrReclaimed", err)
		}
	})
}

// Thousands of locks on one session have no goroutine, cost one heartbeat and end together.
func TestManyLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		timers := &drivertest.Clock{}
		s := memlock.NewStore()
		a := newClientOn(t, timers, s)
		goroutines := runtime.NumGoroutine()
		locks := make([]*holdfast.Lock, n)
		for i := range locks {
			locks[i] = hold(t, a, fmt.Sprint(i))
		}
		if more := runtime.NumGoroutine() - goroutines; more > 0 {
			t.Errorf("%d goroutines for %d locks", more, n)
		}
		before := timers.Set.Load()
		time.Sleep(memlock.DefaultLease)
		looks := int64(memlock.DefaultLease / time.Second)
		if set := timers.Set.Load() - before; set > 8+looks {
			t.Errorf("%d timers were set within a lease, want one per heartbeat, and one per second that compares the clocks", set)
		}
		s.Cut(a)
		time.Sleep(memlock.DefaultLease)
		for _, lock := range locks {
			if !errors.Is(lock.Err(), holdfast.ErrSessionExpired) {
				t.Fatal(lock.Err())
			}
		}
		s.Heal(a)
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Messages of the store arrive in the order of their causes: a holder that is asked, and then broken, has been asked.
func TestAskedBeforeBroken(t *testing.T) {
	for _, cut := range []bool{false, true} {
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				store := memlock.NewStore()
				a, b := newClient(t, store), newClient(t, store)
				lock := hold(t, a, "k")
				asked := lock.Asked()
				info, err := b.Inspect(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if cut {
					store.Cut(a)
				}
				if err := errors.Join(b.Ask(t.Context(), info), b.Break(t.Context(), info)); err != nil {
					t.Fatal(err)
				}
				store.Heal(a)
				<-lock.Done()
				select {
				case <-asked:
				default:
					t.Errorf("cut off %v: it was not told that it is asked", cut)
				}
			})
		}
	}
}
