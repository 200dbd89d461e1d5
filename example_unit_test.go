package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// export is a program that uses locks: it uploads three parts, and stops when it loses its lock.
func export(ctx context.Context, locks *holdfast.Client, upload func(context.Context, holdfast.Token) error) error {
	return locks.Do(ctx, "export", func(ctx context.Context, lock *holdfast.Lock) error {
		for range 3 {
			if err := upload(ctx, lock.Token()); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestExportStopsWithItsLock is a test of that program, with package memlock in the place of an engine.
func TestExportStopsWithItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time passes at once in here
		store := memlock.NewStore()
		client, err := memlock.New(&memlock.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())

		parts := 0
		err = export(t.Context(), client.Client, func(ctx context.Context, token holdfast.Token) error {
			if parts++; parts == 2 {
				store.Expire(client) // as a server does that has not heard of the client for a lease
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Hour):
				return nil
			}
		})
		if parts != 2 || !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("%d parts were uploaded: %v", parts, err)
		}
	})
}
