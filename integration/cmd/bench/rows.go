package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// A row of the table makes one line of the report or more.
type row struct {
	name    string // for -run
	measure measure
}

// measure emits lines of the report.
type measure func(ctx context.Context, s *servers, emit func(report.Row)) error

// rows are measured in this order. To compare with one more library, add it to libraries.go and its contests here; to compare
// other work, add that to works.go.
var rows = []row{
	{"uncontended", contest(loopback.of(80), oneLock, goZookeeper, report.AtLeast(1.10))},
	{"uncontended", contest(loopback, oneLock, bareNodes, report.AtMost(1.15))},
	{"uncontended", contest(loopback, heldLock, goZookeeper, report.AtLeast(1.10))},
	{"uncontended", contest(distant, oneLock, goZookeeper, report.AtLeast(1.40))},
	{"uncontended", contest(distant, oneLock, bareNodes, report.AtMost(1.05))},
	{"uncontended", contest(distant, heldLock, goZookeeper, report.AtLeast(1.40))},
	{"peers", contest(loopback.of(20), oneLock, curator, report.AtLeast(1))},
	{"peers", contest(loopback.of(20), oneLock, kazoo, report.AtLeast(1))},
	{"fresh", contest(loopback, freshKeys, goZookeeper, report.AtLeast(1))},
	{"parallel", contest(loopback, parallelLocks, goZookeeper, report.AtLeast(1.8))},
	{"handoff", contest(loopback, handoffs(2), goZookeeper, report.AtLeast(1.10))},
	{"handoff", contest(loopback, handoffs(10), goZookeeper, report.AtLeast(1.10))},
	{"handoff", contest(loopback, handoffs(30), goZookeeper, report.AtLeast(1.10))},
	{"handoff", contest(loopback, handoffs(100), goZookeeper, report.AtLeast(1.10))},
	{"handoff", contest(loopback, handoffs(300), goZookeeper, report.AtLeast(1.25))},
	{"handoff", contest(loopback, handoffs(1000), goZookeeper, report.AtLeast(1.25))},
	{"handoff", contest(distant.of(20), handoffs(10), goZookeeper, report.AtLeast(1.40))},
	{"handoff", contest(distant.of(20), handoffs(100), goZookeeper, report.AtLeast(1.40))},
	{"crowd", contest(loopback.of(10), crowd, goZookeeper, report.AtLeast(1.5))},
	{"peers", contest(loopback.of(20), handoffs(10), curator, report.AtLeast(1))},
	{"peers", contest(loopback.of(20), handoffs(10), kazoo, report.AtLeast(1))},
	{"handoff", growth(10, 1000, report.AtMost(1.3))},
	{"many", onZooKeeper(manyLocks)},
	{"memory", onZooKeeper(memory)},
	{"traffic", onZooKeeper(wakeUps)},
	{"traffic", onZooKeeper(liveness)},
	{"observe", onZooKeeper(observing)},
	{"readers", contest(reading.of(20), oneReader, curatorRead, report.AtLeast(1))},
	{"readers", contest(reading.of(20), oneReader, kazooRead, report.AtLeast(1))},
	{"readers", contest(reading.of(20), readersTogether, curatorRead, report.AtLeast(1))},
	{"readers", contest(reading.of(20), readersTogether, kazooRead, report.AtLeast(1))},
	{"readers", onZooKeeper(readersServed)},
	{"permits", contest(permitted.of(20), permitsContended, curatorSemaphore, report.AtLeast(2))},
	{"permits", contest(permitted.of(20), permitsContended, kazooSemaphore, report.AtLeast(2))},
	{"permits", onZooKeeper(permitWrites)},
	{"resign", contest(standing.of(12), resignations(10), ownLock, report.AtMost(1.10))},
	{"resign", contest(standing.of(12), resignations(10), latch, report.AtLeast(1))},
	{"resign", contest(standing.of(12), resignations(10), kazooElection, report.AtLeast(1))},
	{"resign", contest(withEtcd.of(12), resignations(10), etcdElection, report.AtLeast(1))},
	{"failover", failover},
	{"dynamodb-calls", onDynamoDB(calls)},
	{"dynamodb-shared", onDynamoDB(sharedCalls)},
	{"dynamodb-held", onDynamoDB(manyLeases)}, // before the npm row, which leaves much garbage
	{"dynamodb-notice", onDynamoDB(notice)},
	{"dynamodb-observe", onDynamoDB(polling)},
	{"dynamodb-npm", contest(dynamoDB, oneLock, npmClient, report.AtLeast(2))},
	{"dynamodb-aws", contest(dynamoDB.of(20), oneLock, awsClient, report.AtLeast(1.5))},
	{"dynamodb-aws", contest(farDynamoDB.of(20), oneLock, awsClient, report.AtLeast(1.5))},
}

// place is a server and the way to it.
type place struct {
	name  string
	ours  library // of which the other side is another
	far   bool    // through a proxy that adds linkLatency
	times int     // how many times as long as elsewhere blocks and warm-up are
	pairs int     // of blocks; 0: as many as usual
}

// of is the same place with another number of pairs of blocks.
func (p place) of(pairs int) place {
	p.pairs = pairs
	return p
}

var (
	loopback = place{name: "ZooKeeper, loopback", ours: onZK, times: 1}
	distant  = place{name: "ZooKeeper, 1 ms each way", ours: onZK, far: true, times: 1}
	// Its server and the npm client compile while they run.
	dynamoDB    = place{name: "DynamoDB's API", ours: onDynamo, times: 3}
	farDynamoDB = place{name: "DynamoDB's API, 1 ms each way", ours: onDynamo, far: true, times: 3}
)

// contest compares holdfast with another library at the same work, in blocks that take turns.
func contest(p place, w work, other library, bar report.Bar) measure {
	return func(ctx context.Context, s *servers, emit func(report.Row)) error {
		var clients []*client
		defer func() {
			for _, c := range clients {
				c.close()
			}
		}()
		ctx, stop := context.WithCancel(ctx) // those who still wait give up, and then with their sessions
		defer stop()
		var sides []side
		for _, lib := range []library{p.ours, other} {
			block, err := w.start(ctx, s, func() (*client, error) {
				c, err := lib.open(ctx, s, p)
				if err == nil {
					clients = append(clients, c)
				}
				return c, err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", lib.name, err)
			}
			sides = append(sides, side{lib.name, block})
		}
		where := p.name
		if p.ours.name == onDynamo.name && s.dynamodb != nil {
			where += ", " + s.dynamodb.server()
		}
		c, err := alternate(ctx, s.plan(w.length, p), report.Contest{
			Where: where, What: w.what, Waiters: w.waiters, Election: w.election, Sharing: w.sharing, Op: w.op, Ops: s.times(w.ops, w.quick),
		}, sides[0], sides[1])
		if err != nil {
			return err
		}
		emit(report.Compare(c, bar))
		return nil
	}
}

// growth compares the costs of a hand-off with two numbers of waiters, of contests with go-zookeeper that have been measured.
func growth(few, many int, bar report.Bar) measure {
	return func(_ context.Context, s *servers, emit func(report.Row)) error {
		cost := map[int][]float64{}
		for _, r := range s.report.Rows {
			if c := r.Contest; c != nil && c.Where == loopback.name && c.Other.Name == goZookeeper.name {
				for _, took := range c.Ours.Blocks {
					cost[c.Waiters] = append(cost[c.Waiters], float64(took)/float64(c.Ops))
				}
			}
		}
		ratios := make([]float64, len(cost[few]))
		if len(ratios) == 0 || len(ratios) != len(cost[many]) {
			return errors.New("there are no contests to compare")
		}
		for i := range ratios {
			ratios[i] = cost[many][i] / cost[few][i]
		}
		emit(report.Judge(fmt.Sprintf("holdfast's cost per hand-off, %d waiters against %d", many, few), "how many times as much",
			fmt.Sprintf("%d blocks of each, from the rows above", len(ratios)), bar, ratios))
		return nil
	}
}
