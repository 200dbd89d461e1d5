package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// The trials come in groups, of which the worst count, and noise is what the
// machine may add to the worst of one side and not to that of the other.
const (
	groupSize = 5
	noise     = 0.05
)

// notice measures how long after a release a waiter in another client has the
// lock, at the worst moment: right after the waiter has looked.
//
// Then it sends its next read a poll period after the last, learns by it that the
// lock is free, and writes: two calls. One of them is made up for by half of the
// last read, and the half of the release's own call in which its answer came back;
// so from the return of Release it is a poll period and a call. How long those
// are on this machine at this moment a control says, which sleeps for the
// one and makes the other in the same trial.
func notice(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	const poll = 200 * time.Millisecond
	holder, err := e.connect(ctx, dynamolock.Options{})
	if err != nil {
		return err
	}
	defer closeDynamo(holder)
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

// noticeTrial is one release after the other of one lock.
type noticeTrial struct {
	holder     *dynamolock.Client
	waiter     *wired
	looked     chan struct{} // gets a value when the waiter sends a read
	poll       time.Duration
	key, other string // other is what the control reads
}

// run returns how long the waiter took, and how long the control.
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
	// Some servers do not say what is in the way of a write: then the first read
	// is no poll, but asks for that.
	for range 2 {
		select {
		case <-n.looked:
		case err := <-failed:
			return 0, 0, err
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
	// It was about to be sent, and is over when another call is.
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
