package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// handoffSessions is over how many sessions the contenders of one lock are
// spread, round robin, on each side: successive holders use different
// sessions, as different processes would.
const handoffSessions = 10

// crowds are the numbers of waiters.
var crowds = []int{2, 10, 30, 100, 300, 1000}

func handoffs(ctx context.Context, e *env, emit func(report.Row)) error {
	cost := make(map[int][]float64) // of ours per hand-off, by waiters
	for _, n := range crowds {
		c, err := handoffsOf(ctx, e, n)
		if err != nil {
			return fmt.Errorf("%d waiters: %w", n, err)
		}
		emit(report.Compare(c, report.AtLeast(1)))
		for _, took := range c.Ours.Blocks {
			cost[n] = append(cost[n], float64(took)/float64(c.Ops))
		}
	}
	growth := make([]float64, len(cost[10]))
	for i := range growth {
		growth[i] = cost[1000][i] / cost[10][i]
	}
	emit(report.Judge("holdfast's cost per hand-off, 1000 waiters against 10", "how many times as much",
		fmt.Sprintf("%d blocks of each, from the rows above", len(growth)), report.AtMost(1.5), growth))
	return nil
}

func handoffsOf(ctx context.Context, e *env, waiters int) (c report.Contest, err error) {
	var all []*clients
	defer func() {
		for _, cs := range all {
			cs.close()
		}
	}()
	for range min(waiters+1, handoffSessions) {
		cs, err := e.connect(ctx, e.server.Addr())
		if err != nil {
			return c, err
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
	// The remaining waiters give up with their sessions.
	return alternate(ctx, p, report.Contest{
		Where: loopback, What: fmt.Sprintf("hand-offs of one lock, %d waiters", waiters), Waiters: waiters,
		Op: "hand-off", Ops: e.times(min(100, 20*waiters), 10),
	}, side{"holdfast", ours.block}, side{goZookeeper, other.block})
}
