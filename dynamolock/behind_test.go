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

// While nothing can be reached, a program that tries again and again does not
// make its client send more and more, nor keep more and more.
func TestOutageCostsNothing(t *testing.T) {
	const outage = 10 * time.Minute
	for name, c := range map[string]struct {
		fault dynamofake.Fault
		keys  int
		calls int // of the client's own accord, at most
	}{
		// Nothing was sent, so there is nothing to undo: what asks is the probe, and a look at the table.
		"refused":            {dynamofake.Refuse(), 1, 2 * int(outage/(5*time.Second))},
		"refused, many keys": {dynamofake.Refuse(), 600, 2 * int(outage/(5*time.Second))},
		// Whatever was sent may arrive: somebody has to ask, for all keys at once.
		"reset":            {dynamofake.Fail(dynamofake.Reset()), 1, 2 * int(outage/time.Second)},
		"reset, many keys": {dynamofake.Fail(dynamofake.Reset()), 600, 2 * int(outage/time.Second)},
		"silence":          {dynamofake.Drop(), 1, 2 * int(outage/time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
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
					t.Errorf("three leases after it, the client still has %d keys to see to", n)
				}
				if n := runtime.NumGoroutine(); n > before+5 {
					t.Errorf("%d more goroutines, three leases after it", n-before)
				}
			})
		})
	}
}

// A call that is cancelled before there was a connection to send anything on
// sends nothing, then or later.
func TestCancelledBeforeItIsSent(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		a.conn.ResetCounts()
		a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Connect(time.Second) })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
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

// Calls that are cancelled while their writes are under way: what the client does
// behind their backs is a request for each or two, and is bounded at any time.
func TestManyCancelledCalls(t *testing.T) {
	const callers, calls = 10, 50
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
				defer b.close(t)
				a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Delay(c.latency) })
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
								if err := lock.Release(t.Context()); err != nil {
									t.Error(err)
								}
							}
						}
					})
				}
				all.Wait()
				time.Sleep(c.latency + 2*time.Second)
				requests := 0
				for _, n := range a.conn.Calls() {
					requests += n
				}
				each := float64(requests-int(granted.Load())) / callers / calls // but for the releases of locks
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
					if lock, err := b.TryAcquire(t.Context(), fmt.Sprint("k", i)); err != nil {
						t.Fatalf("a key is held for nobody: %v", err)
					} else if err := lock.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				a.close(t)
			})
		})
	}
}

// A client that holds many locks and closes has no more requests under way than
// connections are good for.
func TestCloseWithManyLocks(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		const locks = 500
		for i := range locks {
			a.hold(t, fmt.Sprint("k", i))
		}
		a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Delay(50 * time.Millisecond) })
		a.conn.ResetCounts()
		a.close(t)
		if n := a.conn.Peak(); n > 100 {
			t.Errorf("%d requests at once", n)
		}
		for i := range locks {
			if i := h.item(fmt.Sprint("k", i)); leaseOf(i) != 1 {
				t.Errorf("not released: %v", i)
			}
		}
	})
}

// A caller whose turn comes while it looks whether it has come, because the one before
// gives up, has seen nothing of the key yet: it writes, as the first in line does.
func TestTurnComesWithNothingSeen(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Delay(10 * time.Millisecond) })
		for range 500 {
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
