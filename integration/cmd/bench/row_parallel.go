package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// parallelLocks is how many keys one session uses at the same time.
const parallelLocks = 32

func parallel(ctx context.Context, e *env, emit func(report.Row)) error {
	cs, err := e.connect(ctx, e.server.Addr())
	if err != nil {
		return err
	}
	defer cs.close()
	var ours, other []func(context.Context) error
	for range parallelLocks {
		key := e.name("parallel")
		ours = append(ours, cs.acquireRelease(key))
		other = append(other, cs.lockUnlock(key))
	}
	a, b := side{"holdfast", together(ours)}, side{goZookeeper, together(other)}
	c, err := alternate(ctx, e.plan(150*time.Millisecond), report.Contest{
		Where: loopback, What: fmt.Sprintf("%d locks at the same time on one session", parallelLocks), Op: hold + ", over all",
	}, a, b)
	if err != nil {
		return err
	}
	emit(report.Compare(c, report.AtLeast(1.2)))
	return nil
}

// together makes a block that distributes its operations over goroutines.
func together(each []func(context.Context) error) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, ops int) (time.Duration, error) {
		failed := make(chan error, len(each))
		began := time.Now()
		for i, op := range each {
			share := ops / len(each)
			if i < ops%len(each) {
				share++
			}
			go func() {
				_, err := loop(op)(ctx, share)
				failed <- err
			}()
		}
		var first error
		for range each {
			if err := <-failed; err != nil && first == nil {
				first = err
			}
		}
		return time.Since(began), first
	}
}
