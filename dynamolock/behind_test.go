package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// once has an acquisition make one try.
var once = holdfast.WithRetry(holdfast.Retry{Attempts: 1})

// In an outage, calls that are repeated do not make the client send or remember more and more.
func TestOutageCostsNothing(t *testing.T) {
	const outage = 4 * time.Minute
	for name, c := range map[string]struct {
		fault dynamofake.Fault
		keys  int
		calls int // that the client makes by itself, at most
	}{
		// Nothing was sent, so nothing has to be undone: only the probe and the look at the table ask.
		"refused":            {dynamofake.Refuse(), 1, 2 * int(outage/(5*time.Second))},
		"refused, many keys": {dynamofake.Refuse(), 600, 2 * int(outage/(5*time.Second))},
		// Whatever was sent may arrive, so one worker has to ask, for all keys at once.
		"reset":            {dynamofake.Fail(dynamofake.Reset()), 1, 2 * int(outage/time.Second)},
		"reset, many keys": {dynamofake.Fail(dynamofake.Reset()), 600, 2 * int(outage/time.Second)},
		"silence":          {dynamofake.Drop(), 1, 2 * int(outage/time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				var calls atomic.Int32
				a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					if purposeOf(op) != acquire {
						calls.Add(1)
					}
					return c.fault
				})
				synctest.Wait()
				before, most := runtime.NumGoroutine(), 0
				for i := range int(outage / time.Second) {
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					began := time.Now()
					if _, err := a.TryAcquire(ctx, fmt.Sprint("k", i%c.keys), once); !errors.Is(err, holdfast.ErrDisconnected) {
						t.Fatal(err)
					}
					cancel()
					time.Sleep(time.Until(began.Add(time.Second)))
					most = max(most, runtime.NumGoroutine())
				}
				t.Logf("%d calls, %d goroutines more at the most", calls.Load(), most-before)
				if n := int(calls.Load()); n > c.calls {
					t.Errorf("%d requests besides those of the callers; want %d at most", n, c.calls)
				}
				if most -= before; most > 30 {
					t.Errorf("%d more goroutines", most)
				}
				a.conn.SetFault(nil)
				time.Sleep(3 * lease)
				synctest.Wait()
				if n := dynamolock.Leftovers(a.Client); n != 0 {
					t.Errorf("three leases after it, the client still has to release %d keys", n)
				}
				if n := runtime.NumGoroutine(); n > before+5 {
					t.Errorf("%d more goroutines, three leases after it", n-before)
				}
			})
		})
	}
}

// A call that is cancelled before it had a connection sends nothing, then or later.
func TestCancelledBeforeItIsSent(t *testing.T) {
	forEach(t, map[string]time.Duration{"late": time.Second, "a moment later": 50 * time.Millisecond}, func(t *testing.T, h *harness, connects time.Duration) {
		a := h.client(t)
		a.conn.ResetCounts()
		a.conn.SetFault(always(dynamofake.Connect(connects)))
		ctx := within(t, connects/2)
		if _, err := a.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(2 * lease)
		if calls := a.conn.Calls(); len(calls) != 0 {
			t.Errorf("it has sent %v", calls)
		}
		if i := h.item("k"); i != nil {
			t.Errorf("it has taken %v", i)
		}
	})
}

// For each call that is cancelled during its write, the client sends one or two requests, few at a time.
func TestManyCancelledCalls(t *testing.T) {
	const callers, calls = 10, 20
	for name, c := range map[string]struct {
		mode    dynamolock.Mode
		keys    int
		latency time.Duration
		peak    int // requests under way
		each    float64
	}{
		"one key":                   {dynamolock.FailOpen, 1, 4 * time.Millisecond, 2*callers + 4, 2},
		"ten keys":                  {dynamolock.FailOpen, 10, 4 * time.Millisecond, 2*callers + 4, 2.5},
		"many keys":                 {dynamolock.FailOpen, callers * calls, 4 * time.Millisecond, 64 + 2*callers, 2.5},
		"many keys, closed":         {dynamolock.FailClosed, callers * calls, 4 * time.Millisecond, 64 + 2*callers, 2.5},
		"slower than the timeout":   {dynamolock.FailOpen, 1, 5 * time.Second, 2*callers + 4, 0.2},
		"slower than that, 10 keys": {dynamolock.FailOpen, 10, 5 * time.Second, 64 + 2*callers, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{Mode: c.mode}, func(t *testing.T, h *harness) {
				a, b := h.client(t), h.client(t)
				a.conn.SetFault(always(dynamofake.Delay(c.latency)))
				a.conn.ResetCounts()
				var granted atomic.Int32
				var all sync.WaitGroup
				for g := range callers {
					all.Go(func() {
						for i := range calls {
							ctx, cancel := context.WithTimeout(t.Context(), rand.N(12*time.Millisecond))
							lock, err := a.Acquire(ctx, fmt.Sprint("k", (g*calls+i)%c.keys))
							cancel()
							if err == nil {
								granted.Add(1)
								mustRelease(t, lock)
							}
						}
					})
				}
				all.Wait()
				time.Sleep(c.latency + 2*time.Second)
				each := float64(a.requests()-int(granted.Load())) / callers / calls // but for the releases of locks
				t.Logf("%d calls, %d granted: %.1f requests each, up to %d at once", callers*calls, granted.Load(), each, a.conn.Peak())
				if each > c.each {
					t.Errorf("%.1f requests each, want %v at most", each, c.each)
				}
				if n := a.conn.Peak(); n > c.peak {
					t.Errorf("%d requests at once, want %d at most", n, c.peak)
				}
				if c.keys == callers*calls && granted.Load() == 0 {
					t.Error("nobody was ever granted anything")
				}
				a.conn.SetFault(nil)
				time.Sleep(2 * lease)
				for i := range c.keys {
					lock, err := b.TryAcquire(t.Context(), fmt.Sprint("k", i))
					if err != nil {
						t.Fatalf("nobody holds the key, and it is not free: %v", err)
					}
					mustRelease(t, lock)
				}
			})
		})
	}
}

// A client that closes with many locks has a bounded number of requests under way.
func TestCloseWithManyLocks(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		const locks = 500
		for i := range locks {
			a.hold(t, fmt.Sprint("k", i))
		}
		a.conn.SetFault(always(dynamofake.Delay(50 * time.Millisecond)))
		a.conn.ResetCounts()
		a.close(t)
		if n := a.conn.Peak(); n > 100 {
			t.Errorf("%d requests at once", n)
		}
		for i := range locks {
			h.isFree(t, fmt.Sprint("k", i))
		}
	})
}

// D22. Where answers take long, more requests are under way: a client with thousands of locks closes within a lease.
func TestCloseWithManyLocksAndSlowAnswers(t *testing.T) {
	const short = 5 * time.Second
	bubble(t, dynamolock.Options{Lease: short}, func(t *testing.T, h *harness) {
		a := h.client(t)
		const locks = 1200
		for i := range locks {
			a.hold(t, fmt.Sprint("k", i))
		}
		a.conn.SetFault(always(dynamofake.Delay(200 * time.Millisecond)))
		time.Sleep(short) // heartbeats show it
		a.conn.ResetCounts()
		if d := took(func() { a.close(t) }); d > short/2 {
			t.Errorf("it took %v", d)
		}
		if n := a.conn.Peak(); n > 500 {
			t.Errorf("%d requests at once", n)
		}
		for i := range locks {
			h.isFree(t, fmt.Sprint("k", i))
		}
	})
}

// A caller whose turn comes because the one before gives up has seen nothing of the key yet: it writes.
func TestTurnComesWithNothingSeen(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.conn.SetFault(always(dynamofake.Delay(10 * time.Millisecond)))
		for range 250 {
			first, giveUp := context.WithCancel(t.Context())
			rest, end := context.WithTimeout(t.Context(), 5*time.Millisecond)
			var all sync.WaitGroup
			call := func(ctx context.Context) {
				if lock, err := a.Acquire(ctx, "k"); err == nil {
					_ = lock.Release(t.Context())
				}
			}
			all.Go(func() { call(first) })
			time.Sleep(time.Millisecond)
			all.Go(giveUp)
			for range 8 {
				all.Go(func() { call(rest) })
			}
			all.Wait()
			end()
			time.Sleep(100 * time.Millisecond)
		}
	})
}
