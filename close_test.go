package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// slowClock is slow to return the time, once a test wants it.
type slowClock struct {
	clock.Real
	slow atomic.Bool
}

func (c *slowClock) Now() driver.Instant {
	if c.slow.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	return c.Real.Now()
}

// Close waits for an end that is under way on another goroutine before it closes the engine.
func TestCloseDuringAnEnd(t *testing.T) {
	b := &engine{}
	b.stop = func(context.Context) error {
		if b.ended.Load() != 1 {
			t.Error("the engine was closed before the key had been given back")
		}
		return nil
	}
	c := &slowClock{}
	l := b.open(t, driver.Config{Clock: c})
	done := acquire(t, l, "k", holdfast.WithTTL(5*time.Millisecond)).Done()
	c.slow.Store(true)
	<-done
	mustClose(t, l)
}

// Close ends many locks and as many waiters, each on its own.
func TestCloseWithMany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 3000
		b := &engine{release: func(context.Context) error { time.Sleep(time.Second); return nil }}
		l := b.open(t, driver.Config{})
		locks := make([]*holdfast.Lock, n)
		for i := range locks {
			locks[i] = acquire(t, l, fmt.Sprint(i))
		}
		b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			<-ctx.Done()
			return driver.Grant{}, driver.Held(driver.Info{Key: req.Key})
		}
		errs := make(chan error, n)
		for range n {
			go func() {
				_, err := l.Acquire(t.Context(), "k")
				errs <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		mustClose(t, l)
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v for %d deliveries of a second each", took, n)
		}
		for range n {
			if err := <-errs; !errors.Is(err, holdfast.ErrClosed) {
				t.Fatalf("a waiter got %v, want ErrClosed", err)
			}
		}
		for _, lock := range locks {
			if !errors.Is(lock.Err(), holdfast.ErrReleased) {
				t.Fatal(lock.Err())
			}
		}
		if b.ended.Load() != n {
			t.Errorf("%d of %d keys given back", b.ended.Load(), n)
		}
	})
}

// ctx bounds Close, which reports what it could not confirm.
func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		failed := errors.New("the session would not end")
		b := &engine{release: hang, stop: func(context.Context) error { return failed }}
		l := b.open(t, driver.Config{})
		locks := []*holdfast.Lock{acquire(t, l, "a"), acquire(t, l, "b")}
		lost := acquire(t, l, "c", holdfast.WithTTL(1))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := l.Close(ctx)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v, ctx had a second, and the grace is another", took)
		}
		for _, want := range []error{holdfast.ErrReleasePending, context.DeadlineExceeded, failed} {
			if !errors.Is(err, want) {
				t.Errorf("%v does not tell %v", err, want)
			}
		}
		if errors.Is(err, holdfast.ErrTTLExpired) || !errors.Is(lost.Err(), holdfast.ErrTTLExpired) {
			t.Errorf("an end before Close is none of its errors: %v; %v", err, lost.Err())
		}
		synctest.Wait()
		for _, lock := range locks {
			if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrReleasePending) {
				t.Errorf("Release after Close gave up: %v", err)
			}
		}
		if again := l.Close(t.Context()); again != err {
			t.Errorf("again: %v", again)
		}
	})
}

// Whatever happens at once, each grant is released exactly once, and before the engine is closed.
func TestCloseUnderConcurrency(t *testing.T) {
	for range 50 {
		b := &engine{}
		var granted atomic.Int64
		b.acquire = func(context.Context, *driver.Request) (driver.Grant, error) {
			granted.Add(1)
			return b.grant(), nil
		}
		b.release = func(context.Context) error {
			if b.closed.Load() {
				t.Error("the engine was used after its Close")
			}
			return nil
		}
		l := b.open(t, driver.Config{})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 500 { // or a slow machine would never finish releasing them
					lock, err := l.Acquire(t.Context(), "k", holdfast.WithTTL(time.Duration(i)*20*time.Microsecond))
					if err != nil {
						if !errors.Is(err, holdfast.ErrClosed) {
							t.Error(err)
						}
						return
					}
					if i%2 == 0 {
						go lock.Release(t.Context())
					}
				}
			})
		}
		time.Sleep(200 * time.Microsecond)
		mustClose(t, l)
		wg.Wait()
		if granted.Load() != b.ended.Load() {
			t.Errorf("%d grants, %d given back", granted.Load(), b.ended.Load())
		}
	}
}

// A loop over List may close the client that it lists.
func TestCloseInAList(t *testing.T) {
	l := (&engine{list: []driver.Info{{Key: "a"}, {Key: "b"}}}).open(t, driver.Config{})
	for range l.List(t.Context(), "") {
		mustClose(t, l)
		break
	}
}

// ender is an engine with a session.
type ender struct {
	*engine
	end func(context.Context) error
}

func (e ender) EndSession(ctx context.Context) error { return e.end(ctx) }

// TestCloseReportsTheSession checks that Close reports an unconfirmed end of the session
// even if the client has no lock: contenders end with the session, too.
func TestCloseReportsTheSession(t *testing.T) {
	for _, want := range []error{nil, errors.New("nobody answers")} {
		l, err := holdfast.New(driver.Config{}, nil, func(driver.Host) (driver.Driver, error) {
			return ender{&engine{}, func(context.Context) error { return want }}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = l.Close(t.Context())
		if !errors.Is(err, want) || errors.Is(err, holdfast.ErrReleasePending) != (want != nil) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// R20. The engine refuses to give back a lock while the client closes, and then confirms the end of the session, which has given it back.
func TestCloseAfterARefusedRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		closing, denied := make(chan struct{}), errors.New("denied")
		b := &engine{release: func(context.Context) error {
			<-closing
			return denied
		}}
		c, err := holdfast.New(driver.Config{Margin: margin}, nil, func(host driver.Host) (driver.Driver, error) {
			b.host, b.lease = host, driver.NewLease(host, leaseLength, holdfast.ErrLeaseExpired)
			b.lease.Renew(host.Now())
			return ender{b, func(context.Context) error {
				close(closing)
				time.Sleep(time.Millisecond)
				return nil
			}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		k := acquire(t, c, "k")
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := k.Release(now); !errors.Is(err, holdfast.ErrReleasePending) {
			t.Errorf("Release: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// The end of a ctx whose cause is that another client was closed, such as in a lead of that client's, is not
// the end of this client.
func TestAnotherClientIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		c := renewing(t, b, driver.Config{})
		held := acquire(t, c, "held")
		b.acquire = func(ctx context.Context, _ *driver.Request) (driver.Grant, error) {
			<-ctx.Done()
			return driver.Grant{}, ctx.Err()
		}
		e := election(t, c, nil)
		for name, call := range map[string]func(context.Context) error{
			"Acquire": func(ctx context.Context) error { _, err := c.Acquire(ctx, "k"); return err },
			"Observe": func(ctx context.Context) error {
				for _, err := range c.Observe(ctx, "k") {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"Run": func(ctx context.Context) error {
				return e.Run(ctx, func(context.Context, *holdfast.Lock) error { return nil })
			},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(fmt.Errorf("of another: %w", holdfast.ErrClosed)) })
			if err := call(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "of another") {
				t.Errorf("%s: %v, want the error of ctx", name, err)
			}
		}
		if held.Err() != nil {
			t.Error("the client is closed")
		}
		mustClose(t, c)
	})
}

// E13. Close with a ctx that is done gives back all keys also if it has waited for a lead for as long as it may: the engine has a second of its
// own to confirm it.
func TestCloseGivesBackAfterASlowLead(t *testing.T) {
	for name, lead := range map[string]time.Duration{"that returns": 900 * time.Millisecond, "that does not": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const answer = 500 * time.Millisecond
				var sent atomic.Int64
				b := &engine{release: func(ctx context.Context) error { // as one over a network
					if ctx.Err() != nil {
						return holdfast.ErrDisconnected
					}
					sent.Add(1)
					select {
					case <-time.After(answer):
						return nil
					case <-ctx.Done():
						return holdfast.ErrDisconnected
					}
				}}
				c := renewing(t, b, driver.Config{})
				other := acquire(t, c, "other")
				result := make(chan error, 1)
				go func() {
					result <- election(t, c, nil).Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
						<-ctx.Done()
						time.Sleep(lead)
						return ctx.Err()
					})
				}()
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				began := time.Now()
				err := c.Close(ctx)
				if n := sent.Load(); err != nil || n != 2 {
					t.Errorf("%d of 2 releases were sent: %v", n, err)
				}
				if took, want := time.Since(began), min(lead, time.Second)+answer; took != want {
					t.Errorf("it took %v, want %v", took, want)
				}
				if err := other.Release(t.Context()); err != nil {
					t.Errorf("another key: %v", err)
				}
				<-result
			})
		})
	}
}
