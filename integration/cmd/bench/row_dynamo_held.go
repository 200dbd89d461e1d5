package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

// manyLeases measures what it takes to keep many locks alive, each of which has
// heartbeats of its own: what they cost their process, when heartbeats are sent,
// and whether all locks live on.
func manyLeases(ctx context.Context, e *dynamoEnv, emit func(result)) error {
	if err := firstLeases(ctx, e); err != nil {
		return err
	}
	w, err := e.connectWired(ctx, dynamolock.Options{Lease: dynamolock.DefaultLease})
	if err != nil {
		return err
	}
	defer w.close()
	n := e.times(1000, 200)
	before := measureFootprint()
	locks, err := holdMany(ctx, w.Locker, e.name("held"), n)
	if err != nil {
		return err
	}
	row := fmt.Sprintf("%d held DynamoDB locks", n)
	if err := leaseFootprint(ctx, e, w, before, n, row, emit); err != nil {
		return err
	}
	if err := heartbeats(ctx, e, w, row, emit); err != nil {
		return err
	}
	emit(judge(row+", lost", fmt.Sprintf("since they were taken, with a lease of %v", w.Options().Lease), limit(0, ""),
		[]float64{float64(lost(locks))}))
	return nil
}

// firstLeases takes and releases some locks, for what only the first cost, and
// waits until their leases would have ended.
func firstLeases(ctx context.Context, e *dynamoEnv) error {
	const lease = 2 * time.Second
	w, err := e.connectWired(ctx, dynamolock.Options{Lease: lease})
	if err != nil {
		return err
	}
	_, err = holdMany(ctx, w.Locker, e.name("first"), 100)
	w.close()
	if err != nil {
		return err
	}
	return pause(ctx, lease)
}

func leaseFootprint(ctx context.Context, e *dynamoEnv, w *wired, before footprint, n int, row string, emit func(result)) error {
	// The connections over which the locks came would close by themselves when
	// they have been idle for a while. The heartbeats open those that they need,
	// which count.
	w.transport.CloseIdleConnections()
	var heaps, goroutines []float64
	for range e.times(5, 2) {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		heap, goroutine := measureFootprint().since(before, n)
		heaps, goroutines = append(heaps, heap), append(goroutines, goroutine)
	}
	emit(judge(row+", heap", fmt.Sprintf("bytes each, %d times", len(heaps)), limit(6<<10, " B"), heaps))
	emit(judge(row+", goroutines", fmt.Sprintf("each, %d times", len(heaps)), limit(1, ""), goroutines))
	return nil
}

func heartbeats(ctx context.Context, e *dynamoEnv, w *wired, row string, emit func(result)) error {
	period := w.Options().Heartbeat
	periods := e.times(12, 1) // a minute
	var mu sync.Mutex
	var at []time.Duration
	began := time.Now()
	w.wire.SetRule(func(faulthttp.Request) faulthttp.Fault {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Since(began))
		return faulthttp.Pass
	})
	if err := pause(ctx, time.Duration(periods)*period); err != nil {
		return err
	}
	w.wire.SetRule(nil)
	mu.Lock()
	defer mu.Unlock()
	emit(judge(fmt.Sprintf("%s, busiest 1/%d of a period", row, parts),
		fmt.Sprintf("against the mean; %d heartbeats in %d periods of %v", len(at), periods, period), atMost(1.5), busiest(at, period, periods)))
	return nil
}

func lost(locks []*holdfast.Lock) int {
	n := 0
	for _, lock := range locks {
		if lock.Err() != nil {
			n++
		}
	}
	return n
}
