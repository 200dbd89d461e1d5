package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// manyHeld and manyWaiters are the numbers whose memory is measured.
const manyHeld, manyWaiters = 10_000, 1_000

// footprint is what the process uses: live heap, without stacks, and
// goroutines.
type footprint struct{ heap, goroutines int64 }

func measureFootprint() footprint {
	var m runtime.MemStats
	for range 3 { // pools are emptied in steps
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return footprint{int64(m.HeapAlloc), int64(runtime.NumGoroutine())}
}

// since is the growth per item.
func (f footprint) since(before footprint, items int) (heap, goroutines float64) {
	return float64(f.heap-before.heap) / float64(items), float64(f.goroutines-before.goroutines) / float64(items)
}

// memory measures the memory of held locks and waiters.
func memory(ctx context.Context, e *env, emit func(report.Row)) error {
	rounds := e.times(7, 1)
	for _, c := range []struct {
		row             string
		n               int
		heap, goroutine float64
		measure         func(ctx context.Context, e *env, n int) (heap, goroutines float64, err error)
	}{
		{"%d held locks on one session", manyHeld, 4096, 1, heldFootprint},
		{"%d waiters on one session", manyWaiters, 8192, 2, waiterFootprint},
	} {
		var heaps, goroutines []float64
		for range rounds {
			heap, goroutine, err := c.measure(ctx, e, c.n)
			if err != nil {
				return err
			}
			heaps, goroutines = append(heaps, heap), append(goroutines, goroutine)
		}
		row, over := fmt.Sprintf(c.row, c.n), fmt.Sprintf("%d rounds of %d", rounds, c.n)
		emit(report.Judge(row+", heap", "bytes each", over, report.Limit(c.heap, " B"), heaps))
		emit(report.Judge(row+", goroutines", "each", over, report.Limit(c.goroutine, ""), goroutines))
	}
	return nil
}

func heldFootprint(ctx context.Context, e *env, n int) (heap, goroutines float64, err error) {
	c, err := e.connect(ctx, e.server.Addr())
	if err != nil {
		return 0, 0, err
	}
	defer closeClient(c.Client)
	prefix := e.name("held")
	before := measureFootprint()
	locks, err := holdMany(ctx, c.Client, prefix, n)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(500 * time.Millisecond) // unawaited reads
	heap, goroutines = measureFootprint().since(before, n)
	runtime.KeepAlive(locks)
	return heap, goroutines, nil
}

// holdMany acquires n locks with one client.
func holdMany(ctx context.Context, locker *holdfast.Client, prefix string, n int) ([]*holdfast.Lock, error) {
	locks := make([]*holdfast.Lock, n)
	err := together(n, func(i int) (err error) {
		locks[i], err = locker.Acquire(ctx, fmt.Sprintf("%s-%d", prefix, i))
		return err
	})
	return locks, err
}

// waiterFootprint counts what waiters use beyond their callers: it subtracts
// the goroutine that is parked in each call.
func waiterFootprint(ctx context.Context, e *env, n int) (heap, goroutines float64, err error) {
	c, err := e.connect(ctx, e.server.Addr())
	if err != nil {
		return 0, 0, err
	}
	defer closeClient(c.Client)
	key := e.name("waited")
	holder, err := c.Acquire(ctx, key)
	if err != nil {
		return 0, 0, err
	}
	before := measureFootprint()
	defer waitInVain(ctx, c.Client, key, n)()
	if err := e.settle(ctx, ourQueue(key), n+1); err != nil {
		return 0, 0, err
	}
	heap, goroutines = measureFootprint().since(before, n)
	runtime.KeepAlive(holder)
	return heap, goroutines - 1, nil
}

// waitInVain starts n waiters for a lock that stays held. The function that it returns ends them.
func waitInVain(ctx context.Context, c *holdfast.Client, key string, n int) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			if _, err := c.Acquire(ctx, key); err == nil {
				panic("a waiter got a lock that is held")
			}
		})
	}
	return func() {
		stop()
		callers.Wait()
	}
}
