package main

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

const lease = 20 * time.Second

// onStore returns a client of a store.
func onStore(t *testing.T, store recordlock.Store) *holdfast.Client {
	t.Helper()
	config := driver.Config{AnyKey: true, Lease: func() time.Duration { return lease }}
	c, err := holdfast.New(config, nil, func(host driver.Host) (driver.Driver, error) {
		host.SetConnected(true)
		return recordlock.New(host, store, recordlock.Options{
			Lease: lease, Heartbeat: lease / 4, Poll: time.Second, Timeout: lease / 6, RetryDelay: lease / 200, Late: lease,
		}), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTryOfADeadSemaphore (D13): runs that try once get a key whose holders have died, also if these shared it, or held
// permits of another number.
func TestTryOfADeadSemaphore(t *testing.T) {
	for name, q := range map[string]acquireFlags{"another limit": {limit: 3}, "a lock": {}, "the same": {limit: 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memstore.Store{}
				conn := store.Conn()
				dead := onStore(t, conn)
				for range 2 {
					if _, err := dead.TryAcquire(t.Context(), "k", holdfast.WithLimit(2)); err != nil {
						t.Fatal(err)
					}
				}
				conn.Cut()
				time.Sleep(10 * lease)
				for run := range 2 { // each is a process of its own
					mine := onStore(t, store.Conn())
					c := &client{Client: mine, lease: func() time.Duration { return lease }}
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
