package holdfast_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// The contexts of a lock have ended when its end is seen: a process may be stopped between the end of the lock and the
// cancellation of its contexts, and must not go on with one of them when it is resumed.
func TestContextEndsWithTheLock(t *testing.T) {
	c, _, _ := openFake(t)
	lock := acquire(t, c, "k")
	parents := make([]context.Context, 2000)
	for i := range parents {
		parents[i] = contextOf(t.Context(), lock)
	}
	late := make(chan int)
	go func() {
		<-lock.Done()
		n := 0
		for _, ctx := range parents {
			if ctx.Err() == nil {
				n++
			}
		}
		late <- n
	}()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := <-late; n > 0 {
		t.Errorf("%d contexts had not ended though their lock had", n)
	}
	mustClose(t, c)
}

// ... and so has that of several locks, by the clocks too.
func TestContextOfLocksComparesTheClocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _, clock := openFake(t)
		locks, err := c.AcquireAll(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := locks.Context(t.Context())
		defer cancel()
		clock.Pause()
		time.Sleep(leaseLength)
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), holdfast.ErrLeaseExpired) {
			t.Errorf("after the lease: %v, %v", ctx.Err(), context.Cause(ctx))
		}
		clock.Resume()
		mustClose(t, c)
	})
}

// The goroutine that ends a lock does not wait for itself if a context of the lock is within one of all.
func TestContextWithinThatOfAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, _ := openStory(t, nil)
		for range 20 { // a lock ends its contexts in no certain order
			locks := mustAll(t, l, three)
			ctx, cancel := locks.Context(t.Context())
			defer cancel()
			within, stop := locks.Lock("b").Context(ctx)
			defer stop()
			if err := locks.Lock("b").Release(t.Context()); err != nil {
				t.Error(err)
			}
			if !errors.Is(locks.Err(), holdfast.ErrReleased) || ctx.Err() == nil || within.Err() == nil {
				t.Errorf("%v; %v; %v", locks.Err(), ctx.Err(), within.Err())
			}
			_ = locks.Release(t.Context())
		}
		mustClose(t, l)
	})
}

// R18. A key is given back only when the contexts of its lock have ended, and what was derived from them: also those of several locks.
func TestContextsEndBeforeTheKeyIsGivenBack(t *testing.T) {
	for name, open := range map[string]func(c *holdfast.Client) (context.Context, context.CancelFunc){
		"of one lock": func(c *holdfast.Client) (context.Context, context.CancelFunc) {
			return acquire(t, c, "k").Context(t.Context())
		},
		"of several": func(c *holdfast.Client) (context.Context, context.CancelFunc) {
			locks, err := c.AcquireAll(t.Context(), []string{"k"})
			if err != nil {
				t.Fatal(err)
			}
			return locks.Context(t.Context())
		},
	} {
		for range 100 {
			var late atomic.Bool
			var derived context.Context
			b := &engine{release: func(context.Context) error {
				late.Store(derived.Err() == nil)
				return nil
			}}
			lose := b.losing()
			c := b.open(t, driver.Config{})
			ctx, cancel := open(c)
			var stop context.CancelFunc
			derived, stop = context.WithCancel(ctx)
			(*lose)(holdfast.ErrBroken)
			mustClose(t, c)
			stop()
			cancel()
			if late.Load() {
				t.Fatalf("%s: the key was given back, and the context had not ended", name)
			}
		}
	}
}

// E9. The ctx of a lock also compares the clocks of the lock context that it was derived from, unless WithoutCancel separates the two.
func TestContextWithinThatOfAnotherComparesTheClocks(t *testing.T) {
	type within func(t *testing.T, c *holdfast.Client, parent context.Context) (context.Context, context.CancelFunc)
	ofOne := func(key string) within {
		return func(t *testing.T, c *holdfast.Client, parent context.Context) (context.Context, context.CancelFunc) {
			return acquire(t, c, key).Context(parent)
		}
	}
	ofSeveral := func(keys ...string) within {
		return func(t *testing.T, c *holdfast.Client, parent context.Context) (context.Context, context.CancelFunc) {
			return mustAll(t, c, keys).Context(parent)
		}
	}
	apart := func(_ *testing.T, _ *holdfast.Client, parent context.Context) (context.Context, context.CancelFunc) {
		return context.WithoutCancel(parent), func() {}
	}
	for name, o := range map[string]struct {
		within []within
		ends   bool
	}{
		"of one lock":          {[]within{ofOne("a")}, true},
		"of several":           {[]within{ofSeveral("a", "b")}, true},
		"two of them":          {[]within{ofOne("a"), ofSeveral("b", "c")}, true},
		"that does not end":    {[]within{apart, ofOne("a")}, false},
		"not ending, of three": {[]within{ofOne("a"), apart, ofOne("b")}, false},
	} {
		for look, over := range map[string]func(context.Context) bool{
			"Err":  func(ctx context.Context) bool { return ctx.Err() != nil },
			"Done": func(ctx context.Context) bool { return closed(ctx.Done()) },
		} {
			t.Run(name+", "+look, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					c, _, clock := openFake(t)
					ctx, cancel := acquire(t, c, "outer", holdfast.WithTTL(time.Second)).Context(t.Context())
					defer cancel()
					for _, derive := range o.within {
						ctx, cancel = derive(t, c, ctx)
						defer cancel()
					}
					clock.Pause()
					time.Sleep(time.Second)
					if over(ctx) != o.ends {
						t.Errorf("the outer lock is over, and so is the ctx within: %v, want %v", !o.ends, o.ends)
					}
					if cause := context.Cause(ctx); o.ends && !errors.Is(cause, holdfast.ErrTTLExpired) {
						t.Errorf("it has ended for %v", cause)
					}
					clock.Resume()
					mustClose(t, c)
				})
			})
		}
	}
}

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
