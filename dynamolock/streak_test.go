package dynamolock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// The caller of the one who writes for all gives up before there is a connection. That says nothing to others.
func TestAnothersCancellation(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		c := h.client(t)
		c.conn.SetFault(always(dynamofake.Fail(dynamofake.Throttled())))
		first, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _, _ = c.TryAcquire(first, "k") })
		}
		time.Sleep(time.Minute)
		dialing := make(chan struct{})
		var dials sync.Once
		c.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
			dials.Do(func() { close(dialing) })
			return dynamofake.Connect(time.Hour)
		})
		<-dialing // it is somebody's turn
		for range 3 {
			all.Go(func() {
				if _, err := c.TryAcquire(t.Context(), "k", once); err == nil || errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		c.conn.SetFault(nil)
	})
}

// Many have tried a key whose writes failed, in vain; one has an answer, and few reads tell the others.
func TestEndOfAStreak(t *testing.T) {
	forEach(t, map[string]dynamofake.Fault{
		"throttled": dynamofake.Fail(dynamofake.Throttled()),
		"silent":    dynamofake.Drop(),
	}, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		c := h.client(t)
		var failing atomic.Bool
		var writes atomic.Int64
		failing.Store(true)
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) != acquire {
				return dynamofake.Fault{}
			}
			writes.Add(1)
			if failing.Load() {
				return fault
			}
			return dynamofake.Fault{}
		})
		var all sync.WaitGroup
		var granted atomic.Int64
		for range 200 {
			all.Go(func() {
				lock, err := c.TryAcquire(within(t, time.Hour), "k", holdfast.WithRetry(holdfast.Retry{Max: time.Second}))
				switch {
				case err == nil:
					granted.Add(1)
					time.AfterFunc(time.Minute, func() { mustRelease(t, lock) })
				case !errors.Is(err, holdfast.ErrHeld):
					t.Error(err)
				}
			})
		}
		time.Sleep(dynamolock.DefaultLease / 2) // a try ends after a lease
		failing.Store(false)
		writes.Store(0)
		all.Wait()
		if n, got := writes.Load(), granted.Load(); n > 20 || got != 1 {
			t.Errorf("%d writes, %d granted", n, got)
		}
	})
}

// The reply to a try is lost, and another call reads the item before the next: the try is granted, and not refused by itself.
func TestTryMeetsItself(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{
		"exclusive": nil,
		"permit":    {holdfast.WithLimit(1)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				c := h.client(t)
				c.conn.SetFault(on(acquire, 1, dynamofake.LoseReply(dynamofake.ServerError())))
				retry := holdfast.WithRetry(holdfast.Retry{Initial: 4 * time.Second})
				granted := make(chan error)
				go func() {
					lock, err := c.TryAcquire(t.Context(), "k", append(opts, retry)...)
					if err == nil {
						mustVerify(t, lock)
						mustRelease(t, lock)
					}
					granted <- err
				}()
				time.Sleep(poll / 5) // before a probe
				if _, err := c.TryAcquire(t.Context(), "k", opts...); !errors.Is(err, holdfast.ErrHeld) {
					t.Errorf("the other: %v", err)
				}
				if err := <-granted; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Conflicts with transactions are answers: those who waited for such a write go on by themselves.
func TestConflictInAStreak(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		c := h.client(t)
		fail := func(err error) {
			c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				if purposeOf(op) == "" {
					return dynamofake.Fault{}
				}
				return dynamofake.Fail(err)
			})
		}
		fail(dynamofake.Throttled())
		ctx := within(t, 2*time.Minute)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { _, _ = c.TryAcquire(ctx, "k") })
		}
		time.Sleep(30 * time.Second)
		fail(dynamofake.TransactionConflict())
		for range 10 {
			took := took(func() {
				if _, err := c.TryAcquire(t.Context(), "k", once); !errors.Is(err, holdfast.ErrDisconnected) {
					t.Error(err)
				}
			})
			if most := 3 * c.Options().Timeout; took > most {
				t.Errorf("its error came after %v", took)
			}
		}
		all.Wait()
		c.conn.SetFault(nil)
	})
}

// The tries of others do not keep one from its error for long, however long the lease.
func TestTryOfAThrottledKey(t *testing.T) {
	bubble(t, dynamolock.Options{Lease: dynamolock.MaxLease}, func(t *testing.T, h *harness) {
		c := h.client(t)
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == "" {
				return dynamofake.Fault{}
			}
			return dynamofake.Fail(dynamofake.Throttled())
		})
		ctx := within(t, time.Hour)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _, _ = c.TryAcquire(ctx, "k") })
		}
		time.Sleep(30 * time.Minute)
		for range 20 {
			took := took(func() {
				if _, err := c.TryAcquire(t.Context(), "k", once); !errors.Is(err, holdfast.ErrDisconnected) {
					t.Error(err)
				}
			})
			if took > 3*time.Second {
				t.Errorf("its error came after %v", took)
			}
		}
		all.Wait()
		c.conn.SetFault(nil)
	})
}

// Writes are throttled for as long as many want a free key. Of the contenders of a client one writes, and less and less often;
// only those that did not know may have written before.
func TestManyWantAThrottledKey(t *testing.T) {
	for name, acquire := range map[string]func(t *testing.T, c *client) error{
		"waiters": func(t *testing.T, c *client) error {
			_, err := c.Acquire(t.Context(), "k", holdfast.WithWait(time.Minute))
			return err
		},
		"tries": func(t *testing.T, c *client) error {
			_, err := c.TryAcquire(within(t, time.Minute), "k")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				c := h.client(t)
				var writes atomic.Int64
				c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					if purposeOf(op) == "" {
						return dynamofake.Fault{}
					}
					writes.Add(1)
					return dynamofake.Fail(dynamofake.Throttled())
				})
				time.AfterFunc(poll/100, func() { writes.Store(0) })
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						if err := acquire(t, c); err == nil {
							t.Error("granted")
						}
					})
				}
				all.Wait()
				if n := writes.Load(); n > 60 {
					t.Errorf("%d writes within a minute", n)
				}
				if n := dynamolock.Streaks(c.Client); n != 0 {
					t.Errorf("%d keys are known to fail, and nobody wants them", n)
				}
				c.conn.SetFault(nil)
			})
		})
	}
}

// D90. The same of what keeps readers out for writers that wait behind them: there is one request a poll, however many wait.
func TestManyWritersOfAThrottledKey(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, c := h.client(t), h.client(t)
		a.hold(t, "k", shared)
		var writes atomic.Int64
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if !isIntent(op) {
				return dynamofake.Fault{}
			}
			writes.Add(1)
			return dynamofake.Fail(dynamofake.Throttled())
		})
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if _, err := c.Acquire(t.Context(), "k", holdfast.WithWait(time.Minute)); !errors.Is(err, holdfast.ErrHeld) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := int(writes.Load()); n > 2*int(time.Minute/poll) {
			t.Errorf("%d writes within a minute", n)
		}
	})
}
