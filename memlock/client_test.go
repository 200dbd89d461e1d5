package memlock_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/memlock"
)

func TestOptions(t *testing.T) {
	for _, bad := range []struct {
		field string
		o     memlock.Options
	}{
		{"Options.Lease", memlock.Options{Lease: -1}},
		{"Options.Lease", memlock.Options{Lease: memlock.MinLease - 1}},
		{"Options.Lease", memlock.Options{Lease: memlock.MaxLease + 1}},
		{"Options.Lease", memlock.Options{Lease: math.MaxInt64}},
		{"Options.Store", memlock.Options{Store: new(memlock.Store)}},
		{"Options.Margin", memlock.Options{Margin: -1}},
		{"Options.Owner", memlock.Options{Owner: "a\x00b"}},
		{"Options.Owner", memlock.Options{Owner: strings.Repeat("o", holdfast.MaxOwner+1)}},
		{"Options.Wrap", memlock.Options{Wrap: func(driver.Host, driver.Driver) driver.Driver { return nil }}},
	} {
		_, err := memlock.New(&bad.o)
		var invalid *holdfast.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != bad.field {
			t.Errorf("%+v: %v, want an InvalidError for %s", bad.o, err, bad.field)
		}
	}
	o := memlock.Options{Lease: memlock.MinLease, Margin: time.Hour}
	c, err := memlock.New(&o)
	if err != nil || c.Lease() != memlock.MinLease || o.Store != nil {
		t.Errorf("the least lease: %v, %v; the options became %+v", c, err, o)
	}
	c, err = memlock.New(nil)
	if err != nil || c.Lease() != memlock.DefaultLease {
		t.Errorf("no options: lease %v, %v", c.Lease(), err)
	}
}

// A store without a name is the client's own.
func TestStoresAreApart(t *testing.T) {
	a, b := newClient(t, nil), newClient(t, nil)
	for _, c := range []*memlock.Client{a, b} {
		if _, err := c.TryAcquire(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	}
	memlock.NewStore().Cut(a) // of another store: nothing happens
	memlock.NewStore().Expire(a)
	if info, err := a.Inspect(t.Context(), "k"); err != nil || !info.Held {
		t.Errorf("%+v, %v", info, err)
	}
}

func newClient(t testing.TB, s *memlock.Store) *memlock.Client {
	t.Helper()
	return newClientOn(t, clock.Real{}, s)
}

func newClientOn(t testing.TB, on driver.Clock, s *memlock.Store) *memlock.Client {
	t.Helper()
	c, err := memlock.NewOn(on, &memlock.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustRelease(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// breakIt breaks the lock on a key.
func breakIt(t testing.TB, c *memlock.Client, key string) {
	t.Helper()
	info, err := c.Inspect(t.Context(), key)
	if err == nil {
		err = c.Break(t.Context(), info)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func hold(t testing.TB, c *memlock.Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// A forgotten Close keeps neither a bubble from ending nor its time from passing: synctest would panic.
func TestForgottenCloseInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewStore()
		a, b, c := newClient(t, s), newClient(t, s), newClient(t, s)
		hold(t, a, "held")
		hold(t, a, "with TTL", holdfast.WithTTL(time.Hour))
		hold(t, b, "lost")
		hold(t, c, "cut")
		a.Events()
		time.Sleep(time.Minute)
		s.Expire(b)
		s.Cut(c)
		time.Sleep(time.Minute)
	})
}

// An idle client keeps no timer running, so that it costs nothing.
func TestIdleClientIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timers := &drivertest.Clock{}
		c := newClientOn(t, timers, nil)
		mustRelease(t, hold(t, c, "k"))
		time.Sleep(time.Minute)
		before := timers.Set.Load()
		time.Sleep(24 * time.Hour)
		if set := timers.Set.Load() - before; set != 0 {
			t.Errorf("a client that holds nothing set %d timers", set)
		}
		if err := hold(t, c, "k").Release(t.Context()); err != nil {
			t.Errorf("after a day: %v", err)
		}
	})
}

// A client that was closed while it was cut off does not renew what it could not give back.
func TestCloseWhileCutOffEndsTheHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewStore()
		a, b := newClient(t, s), newClient(t, s)
		hold(t, a, "k")
		s.Cut(a)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Close(ctx); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDisconnected) {
			t.Errorf("Close: %v", err)
		}
		s.Heal(a)
		began := time.Now()
		hold(t, b, "k")
		if took := time.Since(began); took > memlock.DefaultLease {
			t.Errorf("the key was free %v later, longer than a lease", took)
		}
	})
}

// The caller may change the data that it gave or received.
func TestDataIsCopied(t *testing.T) {
	c := newClient(t, nil)
	data := []byte("data")
	hold(t, c, "k", holdfast.WithData(data))
	data[0] = 'X'
	for range 2 {
		info, err := c.Inspect(t.Context(), "k")
		if err != nil || string(info.Data) != "data" {
			t.Errorf("%q, %v", info.Data, err)
		}
		info.Data[1] = 'X'
	}
}

// A session expires while its client is cut off. Once its lease has passed for the client too, nothing is left to be given back.
func TestExpiredWhileCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.NewStore()
		client, err := memlock.New(&memlock.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		lock, err := client.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		store.Cut(client)
		store.Expire(client)
		<-lock.Done()
		if err := client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// R22. A holder that is cut off, and perhaps broken or reclaimed, releases before it can hear of that: nothing is left to be given back when
// its lease has run out.
func TestRelease_CutOff_EndsWithTheLease(t *testing.T) {
	me := holdfast.WithOwner("me")
	for name, end := range map[string]func(t *testing.T, b *memlock.Client){
		"cut off":   func(*testing.T, *memlock.Client) {},
		"broken":    func(t *testing.T, b *memlock.Client) { breakIt(t, b, "k") },
		"reclaimed": func(t *testing.T, b *memlock.Client) { hold(t, b, "k", me, holdfast.WithReclaim()) },
	} {
		for when, wait := range map[string]time.Duration{"at once": 0, "at the end": memlock.DefaultLease / 2} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := memlock.NewStore()
					a, b := newClient(t, s), newClient(t, s)
					lock := hold(t, a, "k", me)
					began := time.Now()
					s.Cut(a)
					end(t, b)
					time.Sleep(wait)
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					if err := lock.Release(ctx); err != nil {
						t.Errorf("Release: %v", err)
					}
					if took := time.Since(began); took != memlock.DefaultLease {
						t.Errorf("it took %v, want the lease", took)
					}
					s.Heal(a)
					if err := hold(t, a, "another").Release(t.Context()); err != nil {
						t.Errorf("healed: %v", err)
					}
					for _, c := range []*memlock.Client{a, b} {
						if err := c.Close(t.Context()); err != nil {
							t.Errorf("Close: %v", err)
						}
					}
				})
			})
		}
	}
}
