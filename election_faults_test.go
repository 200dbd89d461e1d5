package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

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
