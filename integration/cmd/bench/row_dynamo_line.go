package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// waitingLine counts the requests of a client of which many goroutines wait for another client's lock.
func waitingLine(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	const waiters, poll, periods = 100, 200 * time.Millisecond, 20
	holder, err := e.connect(ctx, dynamolock.Options{})
	if err != nil {
		return err
	}
	defer closeClient(holder.Client)
	key := e.name("line")
	lock, err := holder.Acquire(ctx, key)
	if err != nil {
		return err
	}
	w, err := e.connectWired(ctx, dynamolock.Options{Poll: poll})
	if err != nil {
		return err
	}
	defer w.close()
	defer waitInVain(ctx, w.Client.Client, key, waiters)()
	if err := pause(ctx, 2*poll); err != nil { // the first write
		return err
	}
	const read = "GetItem"
	written := func() int { return w.wire.Count("") - w.wire.Count(read) }
	var reads, writes []float64
	windows := e.times(7, 1)
	for range windows {
		before := written()
		n, err := w.perPeriod(ctx, read, poll, periods)
		if err != nil {
			return err
		}
		reads, writes = append(reads, n), append(writes, float64(written()-before))
	}
	if err := lock.Err(); err != nil {
		return err
	}
	over := fmt.Sprintf("%d times %d periods of %v", windows, periods, poll)
	emit(report.Judge(fmt.Sprintf("DynamoDB reads per poll period, %d goroutines wait", waiters), "requests", over, report.Limit(1, ""), reads))
	emit(report.Judge(fmt.Sprintf("DynamoDB writes of the same in %d periods", periods), "requests", over, report.Limit(0, ""), writes))
	return nil
}
