package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestModes_AnotherModeComesAndGoes_NoCallIsRefused: a client asks for a key in another mode, or with other names, again and again, and
// gives up or is refused. Calls in the mode of the holder wait for it at most, also when its process dies.
func TestModes_AnotherModeComesAndGoes_NoCallIsRefused(t *testing.T) {
	permit, reader := []holdfast.Option{holdfast.WithLimit(2)}, []holdfast.Option{holdfast.WithShared()}
	for name, c := range map[string]struct {
		names, otherNames zklock.Names
		mode, other       []holdfast.Option
	}{
		"a lock among permits":                  {mode: permit},
		"a lock among kazoo's permits":          {names: zklock.KazooNames, otherNames: zklock.KazooNames, mode: permit},
		"another limit":                         {mode: permit, other: []holdfast.Option{holdfast.WithLimit(3)}},
		"a permit among readers":                {mode: reader, other: permit},
		"a reader with names that do not fit":   {names: zklock.CuratorRWNames, mode: reader, other: reader},
		"a permit with names that do not fit":   {names: zklock.CuratorRWNames, mode: permit, other: permit},
		"a permit with names that fit, another": {names: zklock.KazooNames, mode: permit, other: []holdfast.Option{holdfast.WithLimit(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				opts, wrong := zklock.Options{Names: c.names}, zklock.Options{Names: c.otherNames}
				holder, right, other := dialWired(t, e, opts), dialWired(t, e, opts), dialWired(t, e, wrong)
				other.Delay(10 * time.Millisecond)
				if _, err := holder.Acquire(inTime(t), "k", c.mode...); err != nil {
					t.Fatal(err)
				}
				stop := time.AfterFunc(4*time.Second, func() { // it dies when its node is there
					other.LoseReply(opCreate)
					other.Refuse(true)
				})
				defer stop.Stop()
				var others sync.WaitGroup
				defer others.Wait()
				others.Go(func() {
					for range 30 {
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
						_, _ = other.Acquire(ctx, "k", c.other...)
						cancel()
						time.Sleep(200 * time.Millisecond)
					}
				})
				for range 400 {
					lock, err := right.Acquire(inTime(t), "k", c.mode...)
					if err != nil {
						t.Fatalf("a call in the mode of the holder: %v", err)
					}
					if err := lock.Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(7 * time.Millisecond)
				}
				var held *holdfast.HeldError
				if _, err := right.TryAcquire(inTime(t), "k"); !errors.As(err, &held) || !held.Holder.Shared {
					t.Errorf("a lock beside: %v", err)
				}
			})
		})
	}
}
