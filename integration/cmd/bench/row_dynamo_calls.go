package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// callsLease is short, so that there are heartbeats to count.
const callsLease = 2 * time.Second

// calls counts the requests that one uncontended lock costs.
func calls(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	w, err := e.connectWired(ctx, dynamolock.Options{Lease: callsLease})
	if err != nil {
		return err
	}
	defer w.close()
	nobody := func(context.Context, string) error { return nil }
	if err := holdCalls(ctx, e, w, "uncontended acquire", "release", nobody, emit); err != nil {
		return err
	}
	if err := tries(ctx, e, w, emit); err != nil {
		return err
	}
	return beatCalls(ctx, e, w, "held lock", nobody, emit)
}

// sharedCalls counts the same for a hold that is shared, while another client shares the key.
func sharedCalls(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	w, err := e.connectWired(ctx, dynamolock.Options{Lease: callsLease})
	if err != nil {
		return err
	}
	defer w.close()
	other, err := e.connect(ctx, dynamolock.Options{Lease: callsLease})
	if err != nil {
		return err
	}
	defer closeClient(other.Client)
	beside := func(ctx context.Context, key string) error {
		_, err := other.Acquire(ctx, key, holdfast.WithShared())
		return err
	}
	if err := holdCalls(ctx, e, w, "shared acquire", "shared release", beside, emit, holdfast.WithShared()); err != nil {
		return err
	}
	return beatCalls(ctx, e, w, "shared hold", beside, emit, holdfast.WithShared())
}

// holdCalls counts the requests of acquisitions and releases, beside what another client does with a new key.
func holdCalls(
	ctx context.Context, e *dynamoEnv, w *wired, acquire, release string, beside func(context.Context, string) error,
	emit func(report.Row), opts ...holdfast.Option,
) error {
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
			if err := beside(ctx, key); err != nil {
				return err
			}
		}
		lock, err := w.Acquire(ctx, key, opts...)
		if err != nil {
			return err
		}
		n, err := count(func() error { return lock.Release(ctx) })
		if err != nil {
			return err
		}
		releases = append(releases, n)
		n, err = count(func() (err error) { lock, err = w.Acquire(ctx, key, opts...); return err })
		if err != nil {
			return err
		}
		acquires = append(acquires, n)
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	over := fmt.Sprintf("%d holds", holds)
	emit(report.Judge("DynamoDB calls per "+acquire, "requests", over, report.Limit(1, ""), acquires))
	emit(report.Judge("DynamoDB calls per "+release, "requests", over, report.Limit(1, ""), releases))
	return nil
}

// beatCalls counts the requests of a hold, beside what another client does with its key.
func beatCalls(
	ctx context.Context, e *dynamoEnv, w *wired, what string, beside func(context.Context, string) error,
	emit func(report.Row), opts ...holdfast.Option,
) error {
	key := e.name("beats")
	if err := beside(ctx, key); err != nil {
		return err
	}
	lock, err := w.Acquire(ctx, key, opts...)
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
	emit(report.Judge("DynamoDB calls per heartbeat period of a "+what,
		"requests", fmt.Sprintf("%d times %d periods of %v", windows, periods, period), report.Limit(1, ""), beats))
	return nil
}

// tries counts the requests of a client that tries keys which another one holds.
func tries(ctx context.Context, e *dynamoEnv, w *wired, emit func(report.Row)) error {
	const most = 20
	holder, err := e.connect(ctx, dynamolock.Options{})
	if err != nil {
		return err
	}
	defer closeClient(holder.Client)
	const read = "GetItem"
	var writes, reads []float64
	keys := e.times(7, 1)
	for range keys {
		key := e.name("tried")
		if _, err := holder.Acquire(ctx, key); err != nil {
			return err
		}
		before, readBefore := w.wire.Count(""), w.wire.Count(read)
		for range most {
			if _, err := w.TryAcquire(ctx, key); !errors.Is(err, holdfast.ErrHeld) {
				return fmt.Errorf("a try of a held key: %w", err)
			}
		}
		n := w.wire.Count(read) - readBefore
		reads, writes = append(reads, float64(n)), append(writes, float64(w.wire.Count("")-before-n))
	}
	over := fmt.Sprintf("%d keys", keys)
	emit(report.Judge(fmt.Sprintf("DynamoDB writes of %d tries of a held key", most), "requests", over, report.Limit(2, ""), writes))
	emit(report.Judge(fmt.Sprintf("DynamoDB reads of %d tries of a held key", most), "requests", over, report.Limit(most, ""), reads))
	return nil
}
