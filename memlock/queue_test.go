package memlock_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/memlock"
)

// A client that holds and waits for the same key loses both places at once.
func TestExpiryOfHolderAndWaiterInOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewStore()
		a, b := newClient(t, s), newClient(t, s)
		first := hold(t, a, "k")
		results := make(chan string, 2)
		var wg sync.WaitGroup
		for name, c := range map[string]*memlock.Client{"a": a, "b": b} {
			wg.Go(func() {
				lock, err := c.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				results <- name
				time.Sleep(time.Second)
				lock.Release(t.Context())
			})
			synctest.Wait()
		}
		s.Expire(a)
		if one, two := <-results, <-results; one != "b" || two != "a" {
			t.Errorf("served %s, %s; want b, then a, at the end of the line", one, two)
		}
		if !errors.Is(first.Err(), holdfast.ErrSessionExpired) {
			t.Error(first.Err())
		}
		wg.Wait()
	})
}

// A grant that comes while its client is cut off is given away again, unless the client returns in time.
func TestGrantWhileCutOff(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprintf("back=%v", back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memlock.NewStore()
				a, b, c := newClient(t, s), newClient(t, s), newClient(t, s)
				lock := hold(t, a, "k")
				order := make(chan string, 2)
				for i, waiter := range []*memlock.Client{b, c} {
					go func() {
						lock := hold(t, waiter, "k")
						order <- "bc"[i : i+1]
						lock.Release(t.Context())
					}()
					synctest.Wait()
				}
				s.Cut(b)
				lock.Release(t.Context())
				synctest.Wait()
				if len(order) > 0 {
					t.Errorf("%s was granted a key that b has", <-order)
				}
				want := "b"
				if !back {
					time.Sleep(memlock.DefaultLease)
					want = "c"
				}
				s.Heal(b)
				if first := <-order; first != want {
					t.Errorf("%s was first, want %s", first, want)
				}
				<-order
			})
		})
	}
}

// A place that was reclaimed or broken just as it was granted is not handed out.
func TestReclaimOfAGrantNobodyHasYet(t *testing.T) {
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

// Cut and Heal from many goroutines leave the client with the last word.
func TestCutAndHealAtOnce(t *testing.T) {
	s := memlock.NewStore()
	a := newClient(t, s)
	events := a.Events()
	defer events.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				s.Cut(a)
				s.Heal(a)
			}
		})
	}
	wg.Wait()
	lock := hold(t, a, "k")
	select {
	case <-events.Ready():
	default:
		t.Error("connected, and the state says otherwise")
	}
	if err := lock.Verify(t.Context()); err != nil {
		t.Error(err)
	}
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
