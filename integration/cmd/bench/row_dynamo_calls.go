package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// calls counts the requests that one uncontended lock costs.
func calls(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	const lease = 2 * time.Second
	w, err := e.connectWired(ctx, dynamolock.Options{Lease: lease})
	if err != nil {
		return err
	}
	defer w.close()
	count := func(do func() error) (float64, error) {
		before := w.wire.Count("")
		err := do()
		return float64(w.wire.Count("") - before), err
	}
	var acquires, releases []float64
	var key string
	holds := e.times(100, 20)
	for i := range holds {
		if i%2 == 0 { // then again, now with an existing item
			key = e.name("calls")
		}
		lock, err := w.Acquire(ctx, key)
		if err != nil {
			return err
		}
		n, err := count(func() error { return lock.Release(ctx) })
		if err != nil {
			return err
		}
		releases = append(releases, n)
		n, err = count(func() (err error) { lock, err = w.Acquire(ctx, key); return err })
		if err != nil {
			return err
		}
		acquires = append(acquires, n)
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	over := fmt.Sprintf("%d holds", holds)
	emit(report.Judge("DynamoDB calls per uncontended acquire", "requests", over, report.Limit(1, ""), acquires))
	emit(report.Judge("DynamoDB calls per release", "requests", over, report.Limit(1, ""), releases))

	lock, err := w.Acquire(ctx, key)
	if err != nil {
		return err
	}
	var beats []float64
	const periods = 4
	windows := e.times(7, 1)
	period := w.Options().Heartbeat
	for range windows {
		n, err := w.perPeriod(ctx, "", period, periods)
		if err != nil {
			return err
		}
		beats = append(beats, n)
	}
	if err := lock.Err(); err != nil {
		return err
	}
	emit(report.Judge("DynamoDB calls per heartbeat period of a held lock",
		"requests", fmt.Sprintf("%d times %d periods of %v", windows, periods, period), report.Limit(1, ""), beats))
	return nil
}
