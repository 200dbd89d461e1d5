package recordlock_test

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// However many waiters a client has, one of them reads, once per period, and none writes.
func TestWaitersShareOnePoller(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		lock := a.hold(t, "k")
		time.Sleep(h.store.Lag)
		const waiters = 100
		var mu sync.Mutex
		var tokens []holdfast.Token
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				lock, err := b.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				tokens = append(tokens, lock.Token())
				mu.Unlock()
				mustRelease(t, lock)
			})
		}
		time.Sleep(time.Minute)
		if calls, _ := b.conn.Calls(); calls["Take"]+calls["Swap"] > 8 {
			t.Errorf("only the first has reason to write, and renews an intent: %v", calls)
		}
		b.conn.Calls()
		const periods = 60
		time.Sleep(periods * poll)
		if calls, _ := b.conn.Calls(); calls["Read"] > periods+3 || calls["Read"] < periods-3 || calls["Take"]+calls["Swap"] > 8 {
			t.Errorf("%d waiters, %d periods: %v", waiters, periods, calls)
		}
		mustRelease(t, lock)
		wg.Wait()
		for i := range tokens[1:] {
			if tokens[i] >= tokens[i+1] {
				t.Fatalf("tokens do not rise: %v", tokens)
			}
		}
	})
}

// The writes of one key fail, its reads do not, and nothing else is asked for: the last of the tries is soon, and the reads
// end no outage again and again.
func TestOnlyWritesFail(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		var events, sent atomic.Int64
		h.onEvent = onConnection(func(bool) { events.Add(1) })
		c := h.client(t)
		c.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if purposeOf(op) == "" {
				return memstore.Fault{}
			}
			sent.Add(1)
			return memstore.Fault{Err: errServer}
		})
		if _, err := c.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 5, Initial: 2 * time.Second})); err == nil {
			t.Error("granted")
		}
		if n := sent.Load(); n < 5 || n > 10 {
			t.Errorf("%d tries, want 5, or some more", n)
		}
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			if _, err := c.TryAcquire(t.Context(), "k", once); err == nil {
				t.Error("granted")
			}
		}
		if n := events.Load(); n > 5 {
			t.Errorf("%d events", n)
		}
		c.conn.SetFault(nil)
	})
}

// TestReleasesIntoSilence: bounds apart are for a partition. In an outage few requests are under way.
func TestReleasesIntoSilence(t *testing.T) {
	bubble(t, modes[2], func(t *testing.T, h *harness) {
		a := h.client(t)
		var locks []*holdfast.Lock
		for i := range 2000 {
			locks = append(locks, a.hold(t, fmt.Sprint(i)))
		}
		a.conn.SetFault(always(memstore.Fault{Lose: true}))
		var all sync.WaitGroup
		for _, lock := range locks {
			all.Go(func() { _ = lock.Release(within(t, 5*time.Minute)) })
		}
		time.Sleep(time.Minute)
		for range 3 {
			a.conn.Calls()
			time.Sleep(time.Minute)
			if n := a.requests(); n > 1200 {
				t.Errorf("%d requests in a minute of silence", n)
			}
		}
		a.conn.SetFault(nil)
		all.Wait()
	})
}

// once has an acquisition make one try.
var once = holdfast.WithRetry(holdfast.Retry{Attempts: 1})

// A client that closes with many locks has a bounded number of requests under way.
func TestCloseWithManyLocks(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a := h.client(t)
		const locks = 500
		for i := range locks {
			a.hold(t, fmt.Sprint("k", i))
		}
		a.conn.SetFault(always(memstore.Fault{Late: 50 * time.Millisecond}))
		a.conn.Calls()
		mustClose(t, a)
		if _, n := a.conn.Calls(); n > 100 {
			t.Errorf("%d requests at once", n)
		}
		for i := range locks {
			h.isFree(t, fmt.Sprint("k", i))
		}
	})
}

// Heartbeats of many locks are spread over the period, and cost little. HOLDFAST_MANY_LOCKS sets how many.
func TestManyLocks(t *testing.T) {
	locks, err := strconv.Atoi(cmp.Or(os.Getenv("HOLDFAST_MANY_LOCKS"), "400"))
	if err != nil {
		t.Fatal(err)
	}
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		h.store.Latency = 0
		a := h.client(t)
		period := h.opts.Heartbeat
		var mu sync.Mutex
		var beats [20]int // in each part of the period
		a.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if purposeOf(op) == beat {
				mu.Lock()
				defer mu.Unlock()
				beats[time.Now().UnixMilli()%period.Milliseconds()*int64(len(beats))/period.Milliseconds()]++
			}
			return memstore.Fault{}
		})
		a.hold(t, "first")
		synctest.Wait()
		before, goroutines := heap(), runtime.NumGoroutine()
		held := make([]*holdfast.Lock, locks)
		for i := range held {
			held[i] = a.hold(t, fmt.Sprint("key", i))
		}
		time.Sleep(period)
		synctest.Wait()
		each, more := (heap()-before)/uint64(locks), runtime.NumGoroutine()-goroutines
		t.Logf("%d locks: %d bytes of heap each, the store's record included, and %d goroutines in all", locks, each, more)
		if each > 7<<10 || more > locks/100 {
			t.Error("that is too much")
		}

		mu.Lock()
		beats = [len(beats)]int{}
		mu.Unlock()
		const while = 20 * time.Second
		time.Sleep(while)
		mu.Lock()
		mean := locks * int(while/period) / len(beats)
		for _, n := range beats {
			if n < mean*9/10 || n > mean*11/10 {
				t.Fatalf("heartbeats in each twentieth of the period, of %d on average: %v", mean, beats)
			}
		}
		t.Logf("heartbeats in each twentieth of the period: %v", beats)
		mu.Unlock()
		for _, lock := range held {
			mustLive(t, lock)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A released lock keeps nothing: no timer runs to the end of its former lease.
func TestReleasedLockLeavesNoTimer(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a := h.client(t)
		for range 10 {
			lock := a.hold(t, "k", holdfast.WithTTL(time.Hour))
			const ofClient = 1 // it compares the clocks, and runs for another second
			if n := a.clock.Pending.Load(); n == 0 || n > 3+ofClient {
				t.Errorf("%d timers for a lock", n)
			}
			mustRelease(t, lock)
			if n := a.clock.Pending.Load(); n > ofClient {
				t.Errorf("%d timers are left", n)
			}
		}
	})
}
