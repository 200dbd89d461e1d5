package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// againstNPM compares uncontended acquire and release with the npm client in a separate process: same table, server and
// lease, both with keep-alive connections.
func againstNPM(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	client, err := e.connect(ctx, dynamolock.Options{Lease: dynamolock.DefaultLease})
	if err != nil {
		return err
	}
	defer closeDynamo(client)
	npm, err := startNPM(ctx, e, e.name("theirs"))
	if err != nil {
		return err
	}
	defer npm.close()
	key := e.name("ours")
	ours := side{"holdfast", loop(func(ctx context.Context) error {
		lock, err := client.Acquire(ctx, key)
		if err != nil {
			return err
		}
		return lock.Release(ctx)
	})}
	other := side{"npm's dynamodb-lock-client", npm.block}
	p := e.plan(250 * time.Millisecond)
	p.warmup *= 3 // both V8 engines, the server's too, compile while running
	c, err := alternate(ctx, p, report.Contest{Where: "DynamoDB's API, " + e.server(), What: uncontendedHold, Op: hold}, ours, other)
	if err != nil {
		return err
	}
	emit(report.Compare(c, report.AtLeast(1.4)))
	return nil
}
