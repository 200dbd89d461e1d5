package recordlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

var throttled = &recordlock.Error{Class: recordlock.NotDone, Err: errors.New("throttled")}

// bubble runs a test in virtual time.
func bubble(t *testing.T, m mode, run func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(20 * time.Minute) }) // requests in flight arrive
		run(t, newHarness(m))
	})
}

func (c *client) hold(t testing.TB, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func sum(calls map[string]int) (n int) {
	for _, k := range calls {
		n += k
	}
	return n
}

// An uncontended acquisition, its release and each beat cost one request.
func TestCost(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"lock": nil, "reader": {holdfast.WithShared()}, "permit": {holdfast.WithLimit(3)}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, modes[0], func(t *testing.T, h *harness) {
				a, b := h.client(t), h.client(t)
				lock := a.hold(t, "k", opts...)
				if calls, _ := a.conn.Calls(); sum(calls) != 1 {
					t.Errorf("to acquire: %v", calls)
				}
				if opts != nil {
					b.hold(t, "k", opts...)
				}
				time.Sleep(lease) // four heartbeats
				if calls, _ := a.conn.Calls(); sum(calls) != 4 || calls["Renew"] != 4 {
					t.Errorf("four beats: %v", calls)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if calls, _ := a.conn.Calls(); opts == nil && sum(calls) != 1 {
					t.Errorf("to release: %v", calls)
				}
			})
		})
	}
}

func TestTriesOfAHeldKey_Write_Once(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		a.hold(t, "k")
		for range 20 {
			if _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, holdfast.ErrHeld) {
				t.Error(err)
			}
		}
		if calls, _ := b.conn.Calls(); calls["Take"]+calls["Swap"] > 1 || calls["Read"] > 20 {
			t.Errorf("20 tries: %v", calls)
		}
	})
}

func TestOneFailingKey_CostsNoOtherLock(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{
		"silent": {Lose: true}, "throttled": {Err: throttled}, "reset": {LoseReply: true, Err: errors.New("reset")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, modes[0], func(t *testing.T, h *harness) {
				var events atomic.Int64
				h.onEvent = func(e holdfast.Event) {
					if e.Kind == holdfast.Ready || e.Kind == holdfast.Disconnected {
						events.Add(1)
					}
				}
				a := h.client(t)
				var locks []*holdfast.Lock
				for i := range 300 {
					locks = append(locks, a.hold(t, fmt.Sprint("well", i)))
				}
				time.Sleep(lease)
				events.Store(0)
				var sent atomic.Int64
				a.conn.SetFault(func(op memstore.Op) memstore.Fault {
					if op.Key != "failing" {
						return memstore.Fault{}
					}
					sent.Add(1)
					return fault
				})
				if _, err := a.Acquire(t.Context(), "failing", holdfast.WithWait(time.Minute)); err == nil {
					t.Error("granted")
				}
				time.Sleep(time.Minute)
				if n := sent.Load(); n > 120 {
					t.Errorf("%d requests for the key in two minutes", n)
				}
				if n := events.Load(); n > 0 {
					t.Errorf("%d events of the connection", n)
				}
				for _, lock := range locks {
					if left := time.Until(lock.Deadline()); lock.Err() != nil || left < lease/2 {
						t.Fatalf("%q: %v, %v left", lock.Key(), lock.Err(), left)
					}
				}
			})
		})
	}
}

func TestManyWaitersOfAThrottledKey_WriteSeldom(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a := h.client(t)
		var writes atomic.Int64
		a.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if op.Name == "Read" {
				return memstore.Fault{}
			}
			writes.Add(1)
			return memstore.Fault{Err: throttled}
		})
		var all sync.WaitGroup
		for range 2000 {
			all.Go(func() {
				if _, err := a.Acquire(t.Context(), "k", holdfast.WithWait(time.Minute)); err == nil {
					t.Error("granted")
				}
			})
		}
		all.Wait()
		if n := writes.Load(); n > 120 {
			t.Errorf("%d writes in a minute", n)
		}
	})
}

// After an outage of ten minutes, few requests are in flight at a time, and all waiters are served soon.
func TestOutageWithManyLocksAndWaiters(t *testing.T) {
	keys := 500
	if os.Getenv("HOLDFAST_KEYS") != "" {
		keys, _ = strconv.Atoi(os.Getenv("HOLDFAST_KEYS"))
	}
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		for i := range keys {
			a.hold(t, fmt.Sprint(i))
		}
		var served atomic.Int64
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				lock, err := b.Acquire(t.Context(), fmt.Sprint(i))
				if err != nil {
					t.Error(err)
					return
				}
				served.Add(1)
				_ = lock.Release(t.Context())
			})
		}
		time.Sleep(lease)
		a.conn.Cut()
		b.conn.Cut()
		time.Sleep(10 * time.Minute)
		if n := served.Load(); n > 0 {
			t.Errorf("%d served in the outage", n)
		}
		b.conn.Calls()
		a.conn.Heal()
		b.conn.Heal()
		began := time.Now()
		all.Wait()
		if d := time.Since(began); d > 2*lease {
			t.Errorf("the last was served after %v", d)
		}
		if _, peak := b.conn.Calls(); peak > 64+2 { // besides the slots there are probes
			t.Errorf("%d requests in flight", peak)
		}
	})
}

// Where leases never expire, a call that was given up leaves the key free once replies arrive again.
func TestGivenUp_LongSilence_FreesTheKey(t *testing.T) {
	for _, m := range modes[1:] {
		t.Run(m.name, func(t *testing.T) {
			bubble(t, m, func(t *testing.T, h *harness) {
				a, b := h.client(t), h.client(t)
				a.conn.SetFault(func(memstore.Op) memstore.Fault { return memstore.Fault{LoseReply: true} })
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := a.Acquire(ctx, "k"); err == nil {
					t.Error("granted")
				}
				cancel()
				time.Sleep(10 * time.Minute)
				a.conn.SetFault(nil)
				time.Sleep(2 * time.Minute)
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Two modes take turns, though clients of both want the key all the time.
func TestTwoModes_BothServed(t *testing.T) {
	reader, permit, writer := holdfast.WithShared(), holdfast.WithLimit(2), holdfast.WithData(nil)
	for name, pair := range map[string][2]holdfast.Option{
		"readers, writers": {reader, writer}, "permits, writers": {permit, writer}, "permits, readers": {permit, reader},
		"two limits": {permit, holdfast.WithLimit(3)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, modes[0], func(t *testing.T, h *harness) {
				var served [2]atomic.Int64
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var all sync.WaitGroup
				for n := range 6 {
					c := h.client(t)
					all.Go(func() {
						for ctx.Err() == nil {
							lock, err := c.Acquire(ctx, "k", pair[n%2])
							if err != nil {
								continue
							}
							served[n%2].Add(1)
							time.Sleep(300 * time.Millisecond)
							_ = lock.Release(t.Context())
						}
					})
				}
				all.Wait()
				if served[0].Load() < 50 || served[1].Load() < 50 {
					t.Errorf("served %d and %d times in ten minutes", served[0].Load(), served[1].Load())
				}
			})
		})
	}
}
