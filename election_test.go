package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

func election(t testing.TB, c *holdfast.Client, o *holdfast.ElectionOptions) *holdfast.Election {
	t.Helper()
	e, err := c.Election("k", o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// renewing makes a client of an engine that renews its lease until the client is closed.
func renewing(t testing.TB, b *engine, config driver.Config, onEvent ...func(holdfast.Event)) *holdfast.Client {
	c := b.open(t, config, onEvent...)
	stop := make(chan struct{})
	b.stop = func(context.Context) error { close(stop); return nil }
	go func() {
		for {
			select {
			case <-time.After(leaseLength / 10):
				b.lease.Renew(b.host.Now())
			case <-stop:
				return
			}
		}
	}()
	return c
}

// Close waits for lead while the lock lives, for as long as its lease would have lasted,
// and gives back the key after that. Other locks end at once.
func TestCloseWaitsForLead(t *testing.T) {
	for name, o := range map[string]struct {
		lead, want time.Duration // after the end of its ctx
		ctx        time.Duration // of Close
	}{
		"until it returns":         {3 * time.Second, 3 * time.Second, time.Hour},
		"until the ctx has ended":  {time.Minute, 3 * time.Second, 2 * time.Second},
		"as long as a lease lasts": {time.Minute, validity, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := &engine{}
				c := renewing(t, b, driver.Config{})
				other := acquire(t, c, "other")
				e := election(t, c, nil)
				result := make(chan error, 1)
				var term *holdfast.Lock
				go func() {
					result <- e.Run(t.Context(), func(ctx context.Context, lock *holdfast.Lock) error {
						term = lock
						<-ctx.Done()
						if cause := context.Cause(ctx); !errors.Is(cause, holdfast.ErrClosed) {
							t.Errorf("the ctx of lead ended for %v", cause)
						}
						time.Sleep(o.lead)
						return ctx.Err()
					})
				}()
				synctest.Wait()
				b.lease.Renew(b.host.Now())
				began := time.Now()
				closed := make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), o.ctx)
					defer cancel()
					closed <- c.Close(ctx)
				}()
				synctest.Wait()
				if !over(other) || over(term) || b.ended.Load() != 1 {
					t.Errorf("at once: another lock has ended: %v, that of the term: %v; %d given back", over(other), over(term), b.ended.Load())
				}
				if err := <-closed; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != o.want {
					t.Errorf("it took %v, want %v", took, o.want)
				}
				if err := <-result; !errors.Is(err, holdfast.ErrClosed) {
					t.Errorf("Run: %v", err)
				}
				if !errors.Is(term.Err(), holdfast.ErrReleased) {
					t.Error(term.Err())
				}
			})
		})
	}
}

func over(k *holdfast.Lock) bool { return closed(k.Done()) }

// lead may close its client: with its own ctx, that waits for the grace only.
func TestCloseInLead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		began := time.Now()
		err := election(t, c, nil).Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error { return c.Close(ctx) })
		if !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A lead that always returns at once, or loses its term at once, is called once per second.
func TestTermsArePaced(t *testing.T) {
	for name, lead := range map[string]func(*engine) error{
		"steps down": func(*engine) error { return nil },
		"is lost":    func(b *engine) error { b.lease.End(holdfast.ErrLeaseExpired); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := &engine{}
				c := b.open(t, driver.Config{})
				b.acquire = func(context.Context, *driver.Request) (driver.Grant, error) {
					b.lease = driver.NewLease(b.host, leaseLength, holdfast.ErrLeaseExpired)
					return b.grant(), nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second-1)
				defer cancel()
				n := 0
				err := election(t, c, nil).Run(ctx, func(context.Context, *holdfast.Lock) error { n++; return lead(b) })
				if !errors.Is(err, context.DeadlineExceeded) || n != 10 {
					t.Errorf("%d terms in 10 s; Run: %v", n, err)
				}
				mustClose(t, c)
			})
		})
	}
}

// A Fit that minds no ctx ends the term, does not keep the key, and is not called twice at a time.
func TestFitThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		c := renewing(t, b, driver.Config{})
		asked := 0
		e := election(t, c, &holdfast.ElectionOptions{FitEvery: time.Second, Fit: func(context.Context) error {
			if asked++; asked == 2 {
				time.Sleep(time.Minute)
			}
			return nil
		}})
		began, terms := time.Now(), 0
		err := e.Run(t.Context(), func(ctx context.Context, lock *holdfast.Lock) error {
			if terms++; terms == 2 {
				return holdfast.ErrWithdrawn
			}
			context.AfterFunc(ctx, func() {
				if took := time.Since(began); took != 2*time.Second || !errors.Is(context.Cause(ctx), holdfast.ErrUnfit) {
					t.Errorf("the term ended after %v: %v", took, context.Cause(ctx))
				}
			})
			go func() {
				<-lock.Done()
				if took := time.Since(began); took != 2*time.Second {
					t.Errorf("the key was given back after %v", took)
				}
			}()
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); err != nil || took < time.Minute || asked != 3 {
			t.Errorf("Run: %v after %v; asked %d times", err, took, asked)
		}
		mustClose(t, c)
	})
}
