package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// row compares holdfast with another library at the same work.
type row struct {
	name        string // for -run
	where, work string
	ours, other side
	ops         int     // of a block; 0: as many as fill blockLength
	bar         float64 // the lower end of the interval of the ratios must reach it
}

// side is one of the two libraries of a row.
type side struct {
	name  string
	start func(context.Context, *lifetime) (block, error)
}

// block does a number of operations and returns their time.
type block func(ctx context.Context, ops int) (time.Duration, error)

const (
	nearZooKeeper, farZooKeeper = "ZooKeeper, loopback", "ZooKeeper, 1 ms each way"
	nearDynamo, farDynamo       = "DynamoDB's API", "DynamoDB's API, 1 ms each way"

	uncontended = "one lock, uncontended"

	// keysAtOnce is how many keys one session uses at the same time.
	keysAtOnce = 32
	// permits is the limit of the semaphore for which contenders contend.
	permits, contenders = 8, 64
)

var (
	near = zookeeperClient(false)
	far  = zookeeperClient(true)
)

// rows run in this order. Each other library has a file of its own.
var rows = []row{
	{"uncontended", nearZooKeeper, uncontended, ours(alone(near)), goZookeeper(alone(goZookeeperClient(false))), 0, 1},
	{"distant", farZooKeeper, uncontended, ours(alone(far)), goZookeeper(alone(goZookeeperClient(true))), 0, 1.4},
	{"curator", nearZooKeeper, uncontended, ours(alone(near)), curatorMutex(), 0, 1},
	{"kazoo", nearZooKeeper, uncontended, ours(alone(near)), kazooLock(), 0, 1},
	{
		"parallel", nearZooKeeper, fmt.Sprintf("%d locks at the same time on one session", keysAtOnce),
		ours(parallel(near)), goZookeeper(parallel(goZookeeperClient(false))), 0, 1.2,
	},
	handoff(10, 1.03),
	handoff(100, 1.08),
	handoff(1000, 1.25),
	{
		"permits", nearZooKeeper, fmt.Sprintf("a semaphore of %d, %d contenders", permits, contenders),
		ours(crowd(zookeeperClient(false, holdfast.WithLimit(permits)))), curatorSemaphore(), 0, 1.4,
	},
	{"npm", nearDynamo, uncontended, ours(alone(dynamoClient(false))), npmClient(), 0, 1.5},
	{"aws", farDynamo, uncontended, ours(alone(dynamoClient(true))), awsClient(), 0, 1.25},
	{"memory", "memory", uncontended, ours(alone(memoryClient)), side{"a channel of one", alone(channelClient)}, 0, 0.005},
}

func ours(start func(context.Context, *lifetime) (block, error)) side { return side{"holdfast", start} }

func handoff(waiters int, bar float64) row {
	return row{
		fmt.Sprintf("handoff-%d", waiters), nearZooKeeper, fmt.Sprintf("hand-off, %d waiters", waiters),
		ours(handoffs(near, waiters)), goZookeeper(handoffs(goZookeeperClient(false), waiters)), 300, bar,
	}
}

// measure starts both sides, measures pairs of blocks and returns a row of the table.
func (r row) measure(ctx context.Context, b *bench, pairs int) (line string, err error) {
	l := &lifetime{bench: b}
	defer l.close()
	ctx, stop := context.WithCancel(ctx) // waiters give up before their sessions end
	defer stop()
	mine, err := r.ours.start(ctx, l)
	if err != nil {
		return "", fmt.Errorf("holdfast: %w", err)
	}
	theirs, err := r.other.start(ctx, l)
	if err != nil {
		return "", fmt.Errorf("%s: %w", r.other.name, err)
	}
	m, err := measurePairs(ctx, mine, theirs, r.ops, pairs)
	if err != nil {
		return "", err
	}
	ratio, verdict := medianInterval(m.ratios), "reached"
	if ratio.low < r.bar {
		verdict = "missed"
	}
	return fmt.Sprintf("| %s | %s | %s | %s, %s | %.3g [%.3g, %.3g] | ≥ %.3g: %s |", r.where, r.work, perOp(m.ours), r.other.name,
		perOp(m.other), ratio.median, ratio.low, ratio.high, r.bar, verdict), nil
}

// perOp is a median time with three digits.
func perOp(ns []float64) string {
	median := medianInterval(ns).median
	unit, name := 1.0, "ns"
	switch {
	case median >= 1e6:
		unit, name = 1e6, "ms"
	case median >= 1e3:
		unit, name = 1e3, "µs"
	}
	return fmt.Sprintf("%.3g %s", median/unit, name)
}
