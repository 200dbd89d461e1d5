package holdfast_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// In a term, a Fit that ends its goroutine counts as an error.
func TestFitEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		asked := 0
		e := election(t, c, &holdfast.ElectionOptions{Fit: func(context.Context) error {
			if asked++; asked == 2 {
				runtime.Goexit()
			}
			return nil
		}})
		terms := 0
		result := make(chan error, 1)
		go func() {
			defer close(result)
			result <- e.Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
				if terms++; terms == 2 {
					return holdfast.ErrWithdrawn
				}
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, holdfast.ErrUnfit) {
					t.Errorf("the term ended for %v", cause)
				}
				return ctx.Err()
			})
		}()
		if err, ok := <-result; err != nil || !ok || terms != 2 || asked != 3 {
			t.Errorf("Run returned %v: %v; %d terms, asked %d times", ok, err, terms, asked)
		}
		mustClose(t, c)
	})
}

// After a term that ended although ctx did not, Run waits for the engine's confirmation as long as after any other.
func TestRunWaitsForTheConfirmation(t *testing.T) {
	for _, want := range []error{holdfast.ErrResigned, holdfast.ErrAsked, holdfast.ErrUnfit} {
		t.Run(want.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				confirmed := false
				b := &engine{release: func(context.Context) error {
					time.Sleep(9 * time.Second)
					confirmed = true
					return nil
				}}
				c := renewing(t, b, driver.Config{})
				var ask func()
				b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
					ask = req.Asked
					return b.grant(), nil
				}
				var unfit atomic.Bool
				e := election(t, c, &holdfast.ElectionOptions{
					StepDownWhenAsked: true, FitEvery: time.Second, Fit: func(context.Context) error {
						if unfit.Load() {
							return errors.New("for a moment")
						}
						return nil
					},
				})
				terms := 0
				err := e.Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
					if terms++; terms == 2 {
						if !confirmed {
							t.Error("it stood again before the key was given back")
						}
						return holdfast.ErrWithdrawn
					}
					switch want {
					case holdfast.ErrResigned:
						go func() { _ = e.Resign(t.Context()) }()
					case holdfast.ErrAsked:
						ask()
					default:
						unfit.Store(true)
					}
					<-ctx.Done()
					unfit.Store(false)
					if cause := context.Cause(ctx); !errors.Is(cause, want) {
						t.Errorf("the term ended for %v", cause)
					}
					return ctx.Err()
				})
				if err != nil || terms != 2 {
					t.Errorf("%d terms; Run: %v", terms, err)
				}
				mustClose(t, c)
			})
		})
	}
}

// A Fit that says yes too late has not said so.
func TestFitTooLateBeforeATerm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		asked := 0
		e := election(t, c, &holdfast.ElectionOptions{FitEvery: time.Second, Fit: func(ctx context.Context) error {
			if asked++; asked == 1 {
				<-ctx.Done()
			}
			return nil
		}})
		err := e.Run(t.Context(), func(context.Context, *holdfast.Lock) error { return holdfast.ErrWithdrawn })
		if err != nil || asked != 2 {
			t.Errorf("asked %d times before the first term, want 2; Run: %v", asked, err)
		}
		mustClose(t, c)
	})
}

// A Run that ends between two terms reports that the last release was not confirmed.
func TestRun_ReleaseNotConfirmed_ErrReleasePending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{release: hang}
		c := renewing(t, b, driver.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := make(chan error, 1)
		e := election(t, c, nil)
		go func() {
			result <- e.Run(ctx, func(context.Context, *holdfast.Lock) error {
				b.acquire = func(ctx context.Context, _ *driver.Request) (driver.Grant, error) {
					<-ctx.Done()
					return driver.Grant{}, ctx.Err()
				}
				return nil
			})
		}()
		time.Sleep(time.Minute) // it stands again
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrReleasePending) {
			t.Errorf("Run: %v", err)
		}
		closeCtx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_ = c.Close(closeCtx)
	})
}
