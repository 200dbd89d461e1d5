package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// beatPeriods is how many heartbeats of each lock are observed: a minute.
const beatPeriods = 12

// manyLeases measures the cost of many held locks, each with its own heartbeats:
// what the process needs, how heartbeats are spread over time, and whether all
// locks stay alive.
func manyLeases(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
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
	locks, err := holdMany(ctx, w.Client.Client, e.name("held"), n)
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
	emit(report.Judge(row+", lost", fmt.Sprintf("with a lease of %v", w.Options().Lease), fmt.Sprintf("one count, after %d periods of %v", e.times(beatPeriods, 1), w.Options().Heartbeat), report.Limit(0, ""),
		[]float64{float64(lost(locks))}))
	return nil
}

// firstLeases acquires and releases some locks as a warm-up, and waits until
// their leases would have ended.
func firstLeases(ctx context.Context, e *dynamoEnv) error {
	const lease = 2 * time.Second
	w, err := e.connectWired(ctx, dynamolock.Options{Lease: lease})
	if err != nil {
		return err
	}
	_, err = holdMany(ctx, w.Client.Client, e.name("first"), 100)
	w.close()
	if err != nil {
		return err
	}
	return pause(ctx, lease)
}

func leaseFootprint(ctx context.Context, e *dynamoEnv, w *wired, before footprint, n int, row string, emit func(report.Row)) error {
	// The acquisitions' connections would be closed later, when idle. The
	// heartbeats open the connections that they need, which count.
	w.transport.CloseIdleConnections()
	var heaps, goroutines []float64
	for range e.times(7, 2) {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		heap, goroutine := measureFootprint().since(before, n)
		heaps, goroutines = append(heaps, heap), append(goroutines, goroutine)
	}
	over := fmt.Sprintf("%d looks, a second or more apart", len(heaps))
	emit(report.Judge(row+", heap", "bytes each", over, report.Limit(6<<10, " B"), heaps))
	emit(report.Judge(row+", goroutines", "each", over, report.Limit(1, ""), goroutines))
	return nil
}

func heartbeats(ctx context.Context, e *dynamoEnv, w *wired, row string, emit func(report.Row)) error {
	period := w.Options().Heartbeat
	periods := e.times(beatPeriods, 1)
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
	emit(report.Judge(fmt.Sprintf("%s, busiest 1/%d of a period", row, parts),
		"against the mean", fmt.Sprintf("%d periods of %v, %d heartbeats", periods, period, len(at)), report.AtMost(1.5), busiest(at, period, periods)))
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
