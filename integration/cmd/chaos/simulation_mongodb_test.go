package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// startSimulatedMongo starts a store that compares revisions, as MongoDB does for mongolock. The store is the state of the majority, which
// no failover loses. A write of the lock engine takes several requests within one time limit, so requests are faster here.
func startSimulatedMongo(_ context.Context, c casting) (simulatedStage, error) {
	s := startRecords(c, simulatedLatency(c.Seed%4))
	s.engine, s.store.Revisions = "mongodb", true
	return s, nil
}

// lagging is a primary that has not heard yet what the majority has: reads that need not be fresh show earlier states.
func lagging(most time.Duration) *recordTrouble {
	return &recordTrouble{behind: func() time.Duration { return rand.N(most) }}
}

// electing is a replica set that has no primary yet. A write that was sent to the former one may have been carried out.
func electing(d time.Duration) *recordTrouble {
	until := time.Now().Add(d)
	return &recordTrouble{rule: func(memstore.Op) (memstore.Fault, bool) {
		return memstore.Fault{Err: errServer, LoseReply: rand.IntN(4) == 0}, time.Now().Before(until)
	}}
}

// deposed is a primary that does not know of its successor. It shows the state of this moment to reads that need not be fresh, and
// confirms no write. It may answer other requests with an error.
func deposed(silent bool) *recordTrouble {
	began := time.Now()
	return &recordTrouble{
		behind: func() time.Duration { return time.Since(began) },
		rule: func(op memstore.Op) (memstore.Fault, bool) {
			switch {
			case op.Name == "Read" && !op.Fresh:
				return memstore.Fault{}, true
			case silent:
				return memstore.Fault{Lose: true}, true
			}
			return memstore.Fault{Err: errServer}, true
		},
	}
}

// strikePrimary begins a fault of the primary. It hits some clients; after an election the others have another primary.
func (s *recordStage) strikePrimary(f nemesis.Fault) (target string, end func(context.Context) error, err error) {
	var left, others []*recordLine
	for endpoint, line := range s.lines {
		switch {
		case endpoint != operatorLine && rand.IntN(2) == 0:
			left = append(left, line)
			target += line.name + " "
		default:
			others = append(others, line)
		}
	}
	if f.Kind == nemesis.PrimaryLags {
		return target, afflict(left, *lagging(f.For)), nil
	}
	old, next := afflict(left, *deposed(f.Pick%2 == 0)), afflict(others, *electing(f.For / 4))
	return target, func(ctx context.Context) error { _ = next(ctx); return old(ctx) }, nil
}
