package main

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// TestTryOfADeadSemaphore (D13): runs that try once get a key whose holders have died, also if these shared it, or held
// permits of another number.
func TestTryOfADeadSemaphore(t *testing.T) {
	for name, q := range map[string]acquireFlags{"another limit": {limit: 3}, "a lock": {}, "the same": {limit: 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := dynamofake.New()
				o := dynamolock.Options{Table: "locks"}
				if err := dynamolock.CreateTable(t.Context(), db.Client(), &o); err != nil {
					t.Fatal(err)
				}
				conn := db.Client()
				dead, err := dynamolock.New(t.Context(), conn, &o)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if _, err := dead.TryAcquire(t.Context(), "k", holdfast.WithLimit(2)); err != nil {
						t.Fatal(err)
					}
				}
				conn.Cut()
				time.Sleep(10 * dynamolock.DefaultLease)
				for run := range 2 { // each is a process of its own
					mine, err := dynamolock.New(t.Context(), db.Client(), &o)
					if err != nil {
						t.Fatal(err)
					}
					c := &client{Client: mine.Client, lease: func() time.Duration { return mine.Options().Lease }}
					a := &app{err: io.Discard, log: slog.New(slog.DiscardHandler)}
					a.set.timeout = 10 * time.Second
					q := q
					q.key, q.try, q.quiet, q.conflict = "k", true, true, 1
					if lock, err := a.acquire(t.Context(), c, &q); err != nil {
						t.Errorf("run %d: %v", run, err)
					} else if err := lock.Release(t.Context()); err != nil {
						t.Error(err)
					}
					if err := mine.Close(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Hour)
				}
				conn.Heal()
				_ = dead.Close(context.Background()) // its leases were over long ago
			})
		})
	}
}
