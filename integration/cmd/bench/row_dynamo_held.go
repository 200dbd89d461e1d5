package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

// manyLeases measures what it takes to keep many locks alive, each of which has
// heartbeats of its own.
func manyLeases(ctx context.Context, e *dynamoEnv, emit func(result)) error {
	locks := e.times(1000, 200)
	rounds := e.times(3, 1)
	var heaps, goroutines []float64
	for range rounds {
		heap, goroutine, err := leaseFootprint(ctx, e, locks)
		if err != nil {
			return err
		}
		heaps, goroutines = append(heaps, heap), append(goroutines, goroutine)
	}
	row := fmt.Sprintf("%d held DynamoDB locks", locks)
	emit(judge(row+", heap", fmt.Sprintf("bytes each, in %d rounds", rounds), limit(6<<10, " B"), heaps))
	emit(judge(row+", goroutines", fmt.Sprintf("each, in %d rounds", rounds), limit(1, ""), goroutines))
	return heartbeats(ctx, e, locks, row, emit)
}

func leaseFootprint(ctx context.Context, e *dynamoEnv, n int) (heap, goroutines float64, err error) {
	client, err := e.connect(ctx, dynamolock.Options{Lease: dynamolock.DefaultLease})
	if err != nil {
		return 0, 0, err
	}
	defer closeDynamo(client)
	before := measureFootprint()
	locks, err := holdMany(ctx, client.Locker, e.name("held"), n)
	if err != nil {
		return 0, 0, err
	}
	// The connections over which they came close when they have been idle for
	// 3 s; those of the heartbeats stay, and count.
	if err := pause(ctx, 4*time.Second); err != nil {
		return 0, 0, err
	}
	heap, goroutines = measureFootprint().since(before, n)
	runtime.KeepAlive(locks)
	return heap, goroutines, nil
}

// heartbeats looks at when they are sent, and whether all locks live on.
func heartbeats(ctx context.Context, e *dynamoEnv, n int, row string, emit func(result)) error {
	w, err := e.connectWired(ctx, dynamolock.Options{Lease: dynamolock.DefaultLease})
	if err != nil {
		return err
	}
	defer w.close()
	locks, err := holdMany(ctx, w.Locker, e.name("beating"), n)
	if err != nil {
		return err
	}
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
	took := time.Duration(periods) * period
	emit(judge(fmt.Sprintf("%s, busiest 1/%d of a period", row, parts),
		fmt.Sprintf("against the mean; %d heartbeats in %d periods of %v", len(at), periods, period), atMost(1.5), busiest(at, period, periods)))
	emit(judge(row+", lost", fmt.Sprintf("in %v", took), limit(0, ""), []float64{float64(lost(locks))}))
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
