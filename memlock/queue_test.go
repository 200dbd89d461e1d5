package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/memlock"
)

// countingClock counts the timers that are set.
type countingClock struct {
	clock.Real
	n atomic.Int64
}

func (c *countingClock) AfterFunc(d time.Duration, f func()) driver.Timer {
	c.n.Add(1)
	return c.Real.AfterFunc(d, f)
}

// One release wakes one of a thousand waiters.
func TestOneWaiterIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		timers := &countingClock{}
		s := memlock.NewStore()
		a := newClient(t, s)
		b, err := memlock.NewOn(timers, &memlock.Options{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		lock := hold(t, a, "k")
		ctx, cancel := context.WithCancel(t.Context())
		var granted atomic.Int32
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if _, err := b.Acquire(ctx, "k"); err == nil {
					granted.Add(1)
				}
			})
		}
		synctest.Wait()
		before := timers.n.Load()
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		// One timer tells the waiter; a second is the new lock's, for its lease.
		if told := timers.n.Load() - before; granted.Load() != 1 || told > 2 {
			t.Errorf("%d waiters were granted the key, %d timers were set; want 1, and 2 at most", granted.Load(), told)
		}
		cancel()
		wg.Wait()
		if info, err := a.Inspect(t.Context(), "k"); err != nil || len(info.Queue) != 0 || !info.Held {
			t.Errorf("after all others gave up: %d wait, held %v, %v", len(info.Queue), info.Held, err)
		}
	})
}

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

// A grant that comes while its client is cut off is given away again if the
// client does not come back in time, and used if it does.
func TestGrantWhileCutOff(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprintf("back=%v", back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memlock.NewStore()
				a, b, c := newClient(t, s), newClient(t, s), newClient(t, s)
				lock := hold(t, a, "k")
				order := make(chan string, 2)
				for _, w := range []struct {
					name string
					c    *memlock.Client
				}{{"b", b}, {"c", c}} {
					go func() {
						if lock, err := w.c.Acquire(t.Context(), "k"); err != nil {
							t.Error(err)
						} else {
							order <- w.name
							lock.Release(t.Context())
						}
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
		fake := &clock.Fake{}
		a := newClient(t, s)
		b, err := memlock.NewOn(fake, &memlock.Options{Store: s})
		if err != nil {
			t.Fatal(err)
		}
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

// Thousands of locks on one session cost one heartbeat and end together.
func TestManyLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		timers := &countingClock{}
		s := memlock.NewStore()
		a, err := memlock.NewOn(timers, &memlock.Options{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		locks := make([]*holdfast.Lock, n)
		for i := range locks {
			locks[i] = hold(t, a, fmt.Sprint(i))
		}
		before := timers.n.Load()
		time.Sleep(memlock.DefaultLease)
		if set := timers.n.Load() - before; set > 8 {
			t.Errorf("%d timers were set within a lease, want one per heartbeat", set)
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
