package dynamolock_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// What each step costs, in calls and in capacity units.
func TestCost(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0 // or a heartbeat, which comes at any time, falls into a step
		a := h.client(t)
		var lock *holdfast.Lock
		for _, step := range []struct {
			name  string
			do    func()
			calls map[string]int
			read  float64
			write float64
		}{
			{"acquire, a new key", func() { lock = a.hold(t, "k") }, map[string]int{"UpdateItem": 1}, 0, 1},
			{"12 heartbeats", func() { time.Sleep(12 * lease / 4) }, map[string]int{"UpdateItem": 12}, 0, 12},
			{"Ask", func() {
				if info, err := a.Inspect(t.Context(), "k"); err != nil || a.Ask(t.Context(), info) != nil {
					t.Error("not asked")
				}
			}, map[string]int{"GetItem": 2, "UpdateItem": 1}, 2, 1},
			{"a heartbeat, by which the holder knows", func() { <-lock.Asked() }, map[string]int{"UpdateItem": 1}, 0, 1},
			{"11 further ones", func() { time.Sleep(23 * lease / 8) }, map[string]int{"UpdateItem": 11}, 0, 11},
			{"Verify", func() { _ = lock.Verify(t.Context()) }, map[string]int{"GetItem": 1}, 1, 0},
			{"Inspect", func() { _, _ = a.Inspect(t.Context(), "k") }, map[string]int{"GetItem": 1}, 1, 0},
			{"SetData", func() { mustSet(t, lock, "data") }, map[string]int{"UpdateItem": 1}, 0, 1},
			{"SetData of 10 KB", func() { mustSet(t, lock, strings.Repeat("x", 10<<10)) }, map[string]int{"UpdateItem": 1}, 0, 11},
			{"a heartbeat with that", func() { time.Sleep(lease / 4) }, map[string]int{"UpdateItem": 1}, 0, 11},
			{"SetData that removes it", func() { mustSet(t, lock, "") }, map[string]int{"UpdateItem": 1}, 0, 11},
			{"release", func() { _ = lock.Release(t.Context()) }, map[string]int{"UpdateItem": 1}, 0, 1},
			{"acquire", func() { lock = a.hold(t, "k", holdfast.WithOwner("o")) }, map[string]int{"UpdateItem": 1}, 0, 1},
			{"try of a held key", func() { _, _ = a.TryAcquire(t.Context(), "k") }, map[string]int{"GetItem": 1}, 1, 0},
			{"release", func() { _ = lock.Release(t.Context()) }, map[string]int{"UpdateItem": 1}, 0, 1},
			{"reclaim", func() {
				b := h.client(t)
				old := b.hold(t, "k", holdfast.WithOwner("o"))
				lock = a.hold(t, "k", holdfast.WithOwner("o"), holdfast.WithReclaim())
				_ = old.Verify(t.Context())
				b.close(t)
			}, map[string]int{"UpdateItem": 2}, 0, 2}, // the first shows whose grant it is
		} {
			a.conn.ResetCounts()
			step.do()
			read, write := a.conn.Consumed()
			if calls := a.conn.Calls(); !maps.Equal(calls, step.calls) || read != step.read || write != step.write {
				t.Errorf("%s: %v, %v read units, %v write units; want %v, %v, %v",
					step.name, calls, read, write, step.calls, step.read, step.write)
			}
		}
	})
}

// Heartbeats of many locks are spread over the period, and cost little. HOLDFAST_MANY_LOCKS sets how many.
func TestManyLocks(t *testing.T) {
	locks, err := strconv.Atoi(cmp.Or(os.Getenv("HOLDFAST_MANY_LOCKS"), "400"))
	if err != nil {
		t.Fatal(err)
	}
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a := h.client(t)
		period := a.Options().Heartbeat
		var mu sync.Mutex
		var beats [20]int // in each part of the period
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == beat {
				mu.Lock()
				defer mu.Unlock()
				beats[time.Now().UnixMilli()%period.Milliseconds()*int64(len(beats))/period.Milliseconds()]++
			}
			return dynamofake.Fault{}
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
		t.Logf("%d locks: %d bytes of heap each, the fake's item included, and %d goroutines in all", locks, each, more)
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
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
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
