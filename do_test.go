package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// Do waits for the confirmation of the release, but hardly once its ctx is done. It is still delivered.
func TestDoWaitsForTheRelease(t *testing.T) {
	for _, c := range []struct {
		name           string
		ends           time.Duration // of ctx, from the end of fn on
		confirms, took time.Duration // after the end of fn
		confirmed      bool
	}{
		{"healthy", time.Hour, time.Millisecond, time.Millisecond, true},
		{"healthy, ctx is done", 0, time.Millisecond, time.Millisecond, true},
		{"slow", time.Hour, 9 * time.Second, 9 * time.Second, true},
		{"silent", time.Hour, time.Minute, 10 * time.Second, false},
		{"silent, ctx is done", 0, time.Minute, time.Second, false},
		{"silent, ctx ends", 3 * time.Second, time.Minute, 4 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := &engine{release: func(context.Context) error { time.Sleep(c.confirms); return nil }}
				l := b.open(t, driver.Config{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second+c.ends)
				defer cancel()
				var over time.Time
				var lock *holdfast.Lock
				err := l.Do(ctx, "k", func(_ context.Context, k *holdfast.Lock) error {
					time.Sleep(time.Second)
					over, lock = time.Now(), k
					return nil
				})
				if took := time.Since(over); took != c.took {
					t.Errorf("Do returned %v after fn, want %v", took, c.took)
				}
				switch {
				case c.confirmed && err != nil:
					t.Error(err)
				case !c.confirmed && (!errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded)):
					t.Errorf("without a confirmation: %v", err)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("the delivery, in the end: %v", err)
				}
				mustClose(t, l)
			})
		})
	}
}

// An error that fn has from its ctx is the same that the release has: Do tells it once.
func TestDoTellsALossOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fn   func(ctx context.Context) error
		want string
	}{
		"its cause": {context.Cause, `holdfast: do "k": lock lost: broken by somebody else`},
		"nothing":   {func(context.Context) error { return nil }, `holdfast: do "k": lock lost: broken by somebody else`},
		"its error": {context.Context.Err, `holdfast: do "k": lock lost: broken by somebody else`},
		"another":   {func(context.Context) error { return errors.New("job 7") }, `job 7; holdfast: do "k": lock lost: broken by somebody else`},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := memlock.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, client.Client)
			err = client.Do(t.Context(), "k", func(ctx context.Context, _ *holdfast.Lock) error {
				info, err := client.Inspect(t.Context(), "k")
				if err != nil {
					return err
				}
				if err := client.Break(t.Context(), info); err != nil {
					return err
				}
				<-ctx.Done()
				return c.fn(ctx)
			})
			if fmt.Sprint(err) != c.want || !errors.Is(err, holdfast.ErrBroken) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// R23. The client is closed while fn runs: the lock has ended under it, which is an error although fn returns nil. If fn had released the lock
// before, it is none, and what fn says of itself is all there is.
func TestDoWhileTheClientIsClosed(t *testing.T) {
	type work func(release func() error) error
	for name, do := range map[string]func(c *holdfast.Client, fn work) error{
		"Do": func(c *holdfast.Client, fn work) error {
			return c.Do(t.Context(), "k", func(_ context.Context, k *holdfast.Lock) error {
				return fn(func() error { return k.Release(t.Context()) })
			})
		},
		"TryDo": func(c *holdfast.Client, fn work) error {
			return c.TryDo(t.Context(), "k", func(_ context.Context, k *holdfast.Lock) error {
				return fn(func() error { return k.Release(t.Context()) })
			})
		},
		"DoAll": func(c *holdfast.Client, fn work) error {
			return c.DoAll(t.Context(), three, func(_ context.Context, locks *holdfast.Locks) error {
				return fn(func() error { return locks.Release(t.Context()) })
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			failed := errors.New("the work failed")
			for _, o := range []struct {
				own      error
				released bool
				want     error
			}{
				{nil, false, holdfast.ErrClosed},
				{failed, false, failed},
				{failed, true, failed},
			} {
				c := (&engine{}).open(t, driver.Config{})
				err := do(c, func(release func() error) error {
					if o.released {
						if err := release(); err != nil {
							return err
						}
					}
					mustClose(t, c)
					return o.own
				})
				if !errors.Is(err, o.want) || (err == nil) != (o.want == nil) || errors.Is(err, holdfast.ErrClosed) != (o.want == holdfast.ErrClosed) {
					t.Errorf("fn returned %v, released %v: %v, want %v", o.own, o.released, err, o.want)
				}
			}
		})
	}
}

// TestDo_FnReleases_ItsErrorStays: fn releases the lock, and returns the error of its ctx, as its work is unfinished.
func TestDo_FnReleases_ItsErrorStays(t *testing.T) {
	c := (&engine{}).open(t, driver.Config{})
	err := c.Do(t.Context(), "k", func(ctx context.Context, k *holdfast.Lock) error {
		_ = k.Release(t.Context())
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}
