//go:build !race

package integration_test

// The race detector adds to the memory that is in use, so there is nothing to measure with it.

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// heap is the memory in use after a collection, without stacks.
func heap() (bytes uint64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}

// TestMemory measures the memory of a held lock and of a waiter. It does not run in
// parallel with other tests, whose memory it would count.
func TestMemory(t *testing.T) {
	verdict.Begin(t)
	const held, waiters = 10_000, 1_000
	addr := server(t).Addr()
	opts := options()
	opts.SessionTimeout = longest
	client := dial(t, addr, opts)
	take(t, client, newKey(t)) // memory that is allocated once

	check := func(what string, n int, bytes uint64, goroutines int, mostBytes uint64, mostGoroutines int) {
		t.Helper()
		t.Logf("%s: %d bytes of heap and %.2f goroutines each", what, bytes/uint64(n), float64(goroutines)/float64(n))
		if bytes/uint64(n) > mostBytes {
			t.Errorf("%s: %d bytes of heap each, at most %d are allowed", what, bytes/uint64(n), mostBytes)
		}
		if goroutines > mostGoroutines*n+10 {
			t.Errorf("%s: %d goroutines for %d, at most %d each are allowed", what, goroutines, n, mostGoroutines)
		}
	}
	steady := func() (uint64, int) { // once pending work is done
		last, goroutines := heap()
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			now, g := heap()
			if g == goroutines && now < last+last/200 && last < now+last/200 {
				return now, g
			}
			last, goroutines = now, g
		}
		return last, goroutines
	}
	bytes, goroutines := steady()
	locks := hoard(t, client, newKey(t), held)
	after, g := steady()
	check("a held lock", held, after-min(bytes, after), g-goroutines, 4<<10, 1)
	runtime.KeepAlive(locks)

	key := newKey(t)
	take(t, dial(t, addr, opts), key)
	conn := plain(t, addr) // its buffers belong to no waiter
	bytes, goroutines = steady()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() { _, _ = client.Acquire(ctx, key) })
	}
	holds(t, conn, under(key), waiters+1)
	after, g = steady()
	check("a waiter", waiters, after-min(bytes, after), g-goroutines-waiters, 8<<10, 2)
	cancel()
	wg.Wait()
}

// hoard acquires many locks on one session, some at a time.
func hoard(t *testing.T, client *zklock.Client, prefix string, n int) []*holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience*time.Duration(1+n/1000))
	defer cancel()
	locks, errs := make([]*holdfast.Lock, n), make([]error, n)
	few(n, func(i int) { locks[i], errs[i] = client.Acquire(ctx, fmt.Sprintf("%s.%d", prefix, i)) })
	for _, err := range errs {
		must(t, err)
	}
	return locks
}
