package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// "None is free" and "the engine refused" are different answers.
func TestAcquireAnyFailureIsNotHeld(t *testing.T) {
	l := (&engine{acquire: func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		if req.Key == "held" {
			return driver.Grant{}, driver.Held(driver.Info{Key: req.Key})
		}
		return driver.Grant{}, holdfast.ErrDenied
	}}).open(t, driver.Config{})
	_, err := l.AcquireAny(t.Context(), []string{"held", "denied"})
	if !errors.Is(err, holdfast.ErrDenied) {
		t.Errorf("got %v, want ErrDenied", err)
	}
	if errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("%v matches ErrHeld, as if all keys were held", err)
	}
}

// A call that reads the client's holds never sees a half-made grant; the race detector checks that.
func TestGrantOverBeforeItIsHandedOut(t *testing.T) {
	b := &engine{}
	b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		if !req.Reclaim {
			req.Lost(holdfast.ErrReclaimed)
		}
		return b.grant(), nil
	}
	l := b.open(t, driver.Config{})
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

// The delays of a Retry are between tries, and end early when wake closes: after each delay, one try does not count then.
func TestRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, wake := &engine{}, make(chan struct{})
		var tries []time.Duration
		var began time.Time
		b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			for {
				tries = append(tries, time.Since(began))
				if err := req.Retry(ctx, holdfast.ErrDisconnected, wake); err != nil {
					return driver.Grant{}, err
				}
			}
		}
		l := b.open(t, driver.Config{})
		second := holdfast.Retry{Delay: func(n int) (time.Duration, bool) { return time.Second, n < 4 }}
		for _, c := range []struct {
			name  string
			retry holdfast.Retry
			want  string
		}{
			{"attempts", holdfast.Retry{Attempts: 3, Delay: second.Delay}, "[0s 1s 2s]"},
			{"one attempt", holdfast.Retry{Attempts: 1}, "[0s]"},
			{"the function says stop", second, "[0s 1s 2s 3s]"},
			{"total", holdfast.Retry{Total: 1500 * time.Millisecond, Delay: second.Delay}, "[0s 1s]"},
		} {
			for range 2 { // a Retry may be used again
				tries, began = nil, time.Now()
				_, err := l.Acquire(t.Context(), "k", holdfast.WithRetry(c.retry))
				if !errors.Is(err, holdfast.ErrDisconnected) || fmt.Sprint(tries) != c.want {
					t.Errorf("%s: tries at %v, want %s; %v", c.name, tries, c.want, err)
				}
			}
		}
		close(wake)
		tries, began = nil, time.Now()
		if _, err := l.Acquire(t.Context(), "k", holdfast.WithRetry(second)); err == nil || len(tries) != 7 || tries[6] > time.Second {
			t.Errorf("with good news: tries at %v; %v", tries, err)
		}
	})
}

func TestAcquireAnyPasses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		var asked []string
		free := ""
		b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
			asked = append(asked, req.Key)
			if req.Wait {
				t.Error("AcquireAny stands in a queue")
			}
			if req.Key == free {
				b.lease.Renew(b.host.Now())
				return b.grant(), nil
			}
			return driver.Grant{}, driver.Held(driver.Info{Key: req.Key, Holder: driver.Holder{Owner: "owner of " + req.Key}})
		}
		l := b.open(t, driver.Config{})
		keys := []string{"a", "b", "c"}
		second := holdfast.WithRetry(holdfast.Retry{Initial: time.Second, Max: time.Second, Attempts: 3})

		_, err := l.AcquireAny(t.Context(), keys)
		if !errors.Is(err, holdfast.ErrHeld) || fmt.Sprint(asked) != "[a b c]" {
			t.Errorf("one pass: %v, %v", asked, err)
		}
		for _, key := range keys {
			if err == nil || !strings.Contains(err.Error(), "owner of "+key) {
				t.Errorf("%v does not tell who holds %q", err, key)
			}
		}
		asked = nil
		if _, err := l.AcquireAny(t.Context(), keys, second); !errors.Is(err, holdfast.ErrHeld) || len(asked) != 9 {
			t.Errorf("three passes: %v, %v", asked, err)
		}
		free = "c"
		asked = nil
		if lock, err := l.AcquireAny(t.Context(), keys, holdfast.WithRandomOrder()); err != nil || lock.Key() != "c" {
			t.Errorf("%v, %v", lock, err)
		}
		if fmt.Sprint(keys) != "[a b c]" {
			t.Errorf("the caller's keys were changed: %v", keys)
		}
	})
}

// A wait that is shorter than the engine's reply reports its result, not an outage.
func TestWaitShorterThanTheAnswer(t *testing.T) {
	for want, inspect := range map[error]func(context.Context, string) (driver.Info, error){
		holdfast.ErrHeld: func(context.Context, string) (driver.Info, error) {
			return driver.Info{Key: "k", Held: true, Holder: driver.Holder{Owner: "somebody"}}, nil
		},
		holdfast.ErrDisconnected: func(ctx context.Context, _ string) (driver.Info, error) {
			return driver.Info{}, hang(ctx)
		},
	} {
		t.Run(want.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := (&engine{inspect: inspect, acquire: func(ctx context.Context, _ *driver.Request) (driver.Grant, error) {
					return driver.Grant{}, hang(ctx)
				}}).open(t, driver.Config{})
				began := time.Now()
				_, err := l.Acquire(t.Context(), "k", holdfast.WithWait(time.Millisecond))
				if took := time.Since(began); took > 600*time.Millisecond {
					t.Errorf("it took %v to ask who holds the key", took)
				}
				for _, kind := range []error{holdfast.ErrHeld, holdfast.ErrDisconnected} {
					if errors.Is(err, kind) != (kind == want) {
						t.Errorf("%v; want %v alone", err, want)
					}
				}
			})
		})
	}
}

// Retry.Total bounds AcquireAny as a whole, also a key whose engine stops answering late in that time.
func TestTotalOfAcquireAny(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memlock.NewStore()
		other, err := memlock.New(&memlock.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		c, err := memlock.New(&memlock.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		acquire(t, other.Client, "k")
		began := time.Now()
		time.AfterFunc(9*time.Second, func() { store.Cut(c) })
		_, err = c.AcquireAny(t.Context(), []string{"k"}, holdfast.WithRetry(holdfast.Retry{
			Initial: 500 * time.Millisecond, Max: 500 * time.Millisecond, Total: 10 * time.Second,
		}))
		if took := time.Since(began); err == nil || took > 10*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		store.Heal(c)
		mustClose(t, c.Client)
		mustClose(t, other.Client)
	})
}
