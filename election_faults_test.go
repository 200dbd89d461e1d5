package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A lead that withdraws has withdrawn, whatever else its error says.
func TestWithdrawnInAnEndedTerm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		e := election(t, c, nil)
		n := 0
		err := e.Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
			if n++; n > 1 {
				return holdfast.ErrWithdrawn
			}
			go func() { _ = e.Resign(t.Context()) }()
			<-ctx.Done()
			return fmt.Errorf("%w: %w", holdfast.ErrWithdrawn, context.Cause(ctx))
		})
		if n != 1 || err != nil {
			t.Errorf("%d terms; Run: %v", n, err)
		}
		mustClose(t, c)
	})
}

// Whoever stepped down as unfit is asked again FitEvery later, not at once.
func TestUnfitIsAskedAgainLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		const every = 3 * time.Second
		began := time.Now()
		var asked []time.Duration
		e := election(t, c, &holdfast.ElectionOptions{FitEvery: every, Fit: func(context.Context) error {
			if asked = append(asked, time.Since(began)); len(asked) == 2 {
				return errors.New("for a moment")
			}
			return nil
		}})
		terms := 0
		err := e.Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
			if terms++; terms == 2 {
				return holdfast.ErrWithdrawn
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if want := fmt.Sprint([]time.Duration{0, every, 2 * every}); err != nil || fmt.Sprint(asked) != want {
			t.Errorf("asked at %v, want %v; Run: %v", asked, want, err)
		}
		mustClose(t, c)
	})
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

// Resign returns nil only when the engine has the key back, also if another caller or lead itself has ended the term.
func TestResign_LeadHasReturned_WaitsForTheEngine(t *testing.T) {
	for name, c := range map[string]struct {
		ttl time.Duration
		end func(e *holdfast.Election, down chan struct{})
	}{
		"resigned":     {0, func(e *holdfast.Election, _ chan struct{}) { go func() { _ = e.Resign(context.Background()) }() }},
		"stepped down": {0, func(_ *holdfast.Election, down chan struct{}) { close(down) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				back, down := make(chan struct{}), make(chan struct{})
				l := (&engine{release: func(context.Context) error { <-back; return nil }}).open(t, driver.Config{})
				e, err := l.Election("k", &holdfast.ElectionOptions{Candidacy: []holdfast.Option{holdfast.WithTTL(c.ttl)}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					_ = e.Run(ctx, func(ctx context.Context, _ *holdfast.Lock) error {
						select {
						case <-ctx.Done():
						case <-down:
						}
						return nil
					})
				}()
				synctest.Wait()
				c.end(e, down)
				synctest.Wait()
				short, stop := context.WithTimeout(t.Context(), time.Millisecond)
				defer stop()
				if err := e.Resign(short); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("before the engine has the key back: %v", err)
				}
				cancel()
				close(back)
				if err := e.Resign(t.Context()); err != nil {
					t.Errorf("once it has: %v", err)
				}
				mustClose(t, l)
			})
		})
	}
}
