package holdfast_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// TestMigrating_Locco_HasEquivalents: each row of locco's table in docs/migrating.md does what it says, while another client holds "k".
func TestMigrating_Locco_HasEquivalents(t *testing.T) {
	page, err := os.ReadFile("docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	k := []string{"k"}
	const pause = 100 * time.Millisecond
	for row, works := range map[string]func(ctx context.Context, client *holdfast.Client, held *holdfast.Lock, began time.Time) bool{
		"retryTimes": func(ctx context.Context, client *holdfast.Client, _ *holdfast.Lock, began time.Time) bool {
			_, err := client.AcquireAny(ctx, k, holdfast.WithRetry(holdfast.Retry{Attempts: 4, Initial: pause, Max: pause}))
			took := time.Since(began)
			return errors.Is(err, holdfast.ErrHeld) && took > 2*pause && took < 4*pause
		},
		"totalTime": func(ctx context.Context, client *holdfast.Client, _ *holdfast.Lock, began time.Time) bool {
			_, err := client.AcquireAny(ctx, k, holdfast.WithRetry(holdfast.Retry{Total: time.Second}))
			return errors.Is(err, holdfast.ErrHeld) && time.Since(began) <= time.Second
		},
		"retryDelayFn": func(ctx context.Context, client *holdfast.Client, _ *holdfast.Lock, began time.Time) bool {
			delay := func(attempt int) (time.Duration, bool) { return time.Duration(attempt) * pause, attempt < 3 }
			_, err := client.AcquireAny(ctx, k, holdfast.WithRetry(holdfast.Retry{Delay: delay}))
			return errors.Is(err, holdfast.ErrHeld) && time.Since(began) == 3*pause
		},
		"acquire(fn)": func(ctx context.Context, client *holdfast.Client, _ *holdfast.Lock, _ time.Time) bool {
			ran := false
			err := client.Do(ctx, "free", func(context.Context, *holdfast.Lock) error { ran = true; return nil }, holdfast.WithTTL(time.Hour))
			info, look := client.Inspect(ctx, "free")
			return ran && err == nil && look == nil && !info.Held
		},
		"extend": func(_ context.Context, _ *holdfast.Client, held *holdfast.Lock, _ time.Time) bool {
			err := held.Extend(time.Second)
			time.Sleep(900 * time.Millisecond)
			live := held.Err() == nil
			time.Sleep(200 * time.Millisecond)
			return err == nil && live && errors.Is(held.Err(), holdfast.ErrTTLExpired)
		},
		"isLocked": func(ctx context.Context, client *holdfast.Client, held *holdfast.Lock, _ time.Time) bool {
			info, err := client.Inspect(ctx, "k")
			return err == nil && info.Held && held.Err() == nil
		},
		"release": func(ctx context.Context, client *holdfast.Client, held *holdfast.Lock, _ time.Time) bool {
			info, err := client.Inspect(ctx, "k")
			if err == nil {
				err = client.Break(ctx, info)
			}
			return err == nil && errors.Is(held.Release(ctx), holdfast.ErrLost)
		},
	} {
		if !strings.Contains(string(page), "\n| `"+row) {
			t.Errorf("docs/migrating.md has no row for %s", row)
		}
		synctest.Test(t, func(t *testing.T) {
			store := memlock.NewStore()
			var clients [2]*memlock.Client
			for i := range clients {
				if clients[i], err = memlock.New(&memlock.Options{Store: store}); err != nil {
					t.Fatal(err)
				}
				defer clients[i].Close(t.Context())
			}
			held, err := clients[0].Acquire(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if !works(t.Context(), clients[1].Client, held, time.Now()) {
				t.Errorf("%s has no equivalent", row)
			}
		})
	}
}
