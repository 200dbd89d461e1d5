package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// Trials come in groups, of which the worst counts. noise is what the machine may
// add to the worst of only one side.
const (
	groupSize = 5
	noise     = 0.05
)

// notice measures how long after a release a waiter in another client gets the
// lock, in the worst case: right after the waiter's poll.
//
// The waiter sends its next read a poll period later, sees that the lock is free,
// and writes: two calls. Half of the last read and the return half of the
// release's call already lie behind, so from the return of Release it takes a poll
// period and one call. A control measures both in the same trial on the same
// machine: it sleeps for the one and makes the other.
func notice(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	const poll = 200 * time.Millisecond
	holder, err := e.connect(ctx, dynamolock.Options{})
	if err != nil {
		return err
	}
	defer closeClient(holder.Client)
	waiter, err := e.connectWired(ctx, dynamolock.Options{Poll: poll})
	if err != nil {
		return err
	}
	defer waiter.close()
	looked := make(chan struct{}, 1)
	waiter.wire.SetRule(func(r faulthttp.Request) faulthttp.Fault {
		if r.Op == "GetItem" {
			select {
			case looked <- struct{}{}:
			default:
			}
		}
		return faulthttp.Pass
	})
	trial := &noticeTrial{holder: holder, waiter: waiter, looked: looked, poll: poll, key: e.name("notice"), other: e.name("control")}
	var took, control []float64
	for range groupSize * e.times(8, 1) {
		a, b, err := trial.run(ctx)
		if err != nil {
			return err
		}
		took, control = append(took, float64(a)), append(control, float64(b))
	}
	largest := 0.0
	for i := range took {
		largest = max(largest, took[i]/control[i])
	}
	of := func(sample []float64) time.Duration {
		return time.Duration(report.MedianInterval(sample).Median).Round(100 * time.Microsecond)
	}
	emit(report.Judge("DynamoDB release until a waiter has the lock, at most",
		fmt.Sprintf("holdfast %v, poll + a call %v; largest %.2fx", of(took), of(control), largest),
		fmt.Sprintf("the worst of %d releases, %d times", groupSize, len(took)/groupSize),
		report.AtMost(1+noise), worstOf(took, control, groupSize)))
	return nil
}

// noticeTrial releases one lock repeatedly.
type noticeTrial struct {
	holder     *dynamolock.Client
	waiter     *wired
	looked     chan struct{} // receives a value when the waiter sends a read
	poll       time.Duration
	key, other string // the control reads this
}

// run returns the times of the waiter and of the control.
func (n *noticeTrial) run(ctx context.Context) (took, control time.Duration, err error) {
	lock, err := n.holder.Acquire(ctx, n.key)
	if err != nil {
		return 0, 0, err
	}
	var got time.Time
	failed := make(chan error, 1)
	go func() {
		lock, err := n.waiter.Acquire(ctx, n.key)
		got = time.Now()
		if err == nil {
			err = lock.Release(ctx)
		}
		failed <- err
	}()
	// Some servers do not return the item that made a write fail: then the first
	// read fetches it and is not a poll.
	for range 2 {
		select {
		case <-n.looked:
		case err := <-failed:
			return 0, 0, err
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
	// It was about to be sent, and has ended when another call has.
	if _, err := n.holder.Inspect(ctx, n.other); err != nil {
		return 0, 0, err
	}
	if err := lock.Release(ctx); err != nil {
		return 0, 0, err
	}
	released := time.Now()
	if err := pause(ctx, n.poll); err != nil {
		return 0, 0, err
	}
	if _, err := n.holder.Inspect(ctx, n.other); err != nil {
		return 0, 0, err
	}
	control = time.Since(released)
	if err := <-failed; err != nil {
		return 0, 0, err
	}
	select {
	case <-n.looked: // the last look
	default:
	}
	return got.Sub(released), control, nil
}
