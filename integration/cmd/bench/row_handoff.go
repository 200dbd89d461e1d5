package main

import (
	"context"
	"fmt"
	"time"
)

// handoffSessions is how many sessions the contenders of one lock are spread
// over, turn by turn, on each side: successive holders are in different ones, as
// they are in different processes in real life.
const handoffSessions = 10

// crowds is how many wait.
var crowds = []int{2, 10, 100, 1000}

func handoffs(ctx context.Context, e *env, emit func(result)) error {
	cost := make(map[int][]float64) // of ours per hand-off, by waiters
	for _, n := range crowds {
		pairs, ops, err := handoffsOf(ctx, e, n, emit)
		if err != nil {
			return fmt.Errorf("%d waiters: %w", n, err)
		}
		for _, p := range pairs {
			cost[n] = append(cost[n], float64(p.Ours)/float64(ops))
		}
	}
	growth := make([]float64, len(cost[10]))
	for i := range growth {
		growth[i] = cost[1000][i] / cost[10][i]
	}
	emit(judge("cost per hand-off, 1000 waiters against 10", fmt.Sprintf("holdfast %v, %v",
		time.Duration(medianInterval(cost[10]).Median).Round(100*time.Nanosecond),
		time.Duration(medianInterval(cost[1000]).Median).Round(100*time.Nanosecond)), atMost(1.5), growth))
	return nil
}

func handoffsOf(ctx context.Context, e *env, waiters int, emit func(result)) ([]pair, int, error) {
	var all []*clients
	defer func() {
		for _, cs := range all {
			cs.close()
		}
	}()
	for range min(waiters+1, handoffSessions) {
		cs, err := e.connect(ctx, e.server.Addr())
		if err != nil {
			return nil, 0, err
		}
		all = append(all, cs)
	}
	key := e.name("handoff")
	contends, stop := context.WithCancel(ctx)
	defer stop()
	ours := newLine(contends, e, all[0].peer, root+"/"+key, waiters, func(ctx context.Context, i int) (func() error, error) {
		lock, err := all[i%len(all)].ours.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(ctx) }, nil
	})
	other := newLine(contends, e, all[0].peer, peerPath(key), waiters, func(_ context.Context, i int) (func() error, error) {
		lock := all[i%len(all)].peerLock(key)
		return lock.Unlock, lock.LockWithData([]byte(owner))
	})
	p := e.plan(0)
	p.warmup = time.Nanosecond // one block
	p.blocks = min(p.blocks, 30)
	ops := min(40, 10*waiters)
	if e.quick {
		ops = 10
	}
	a, b := side{"holdfast", ours.block}, side{"go-zookeeper", other.block}
	pairs, ops, err := alternate(ctx, p, a, b, ops)
	if err != nil {
		return nil, 0, err
	}
	emit(compared(fmt.Sprintf("hand-offs of one lock, %d waiters in %d sessions", waiters, len(all)), "hand-off", atLeast(1), a, b, pairs, ops))
	return pairs, ops, nil // the waiters that are left give up with their sessions
}
