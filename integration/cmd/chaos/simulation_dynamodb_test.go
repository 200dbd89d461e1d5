package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// simulatedLatency is the least time of a request there and back, from the seed. More happens during a longer request.
func simulatedLatency(seed uint64) time.Duration { return time.Millisecond << (seed % 6) }

// operatorLine is the endpoint of the operator. Only faults of the server affect it.
const operatorLine = "operator"

// ttlPatience is how long an item may stay unchanged before it expires: longer than a holder that does not renew its
// time to live can hold a lock. It stands for the day or more that items have in DynamoDB.
const ttlPatience = 3 * dynamoLease / 2

// recordStage is a store of records in virtual time, and a line to it for each slot. dynamolock's state machine runs on it; the
// differential test compares the store with DynamoDB.
type recordStage struct {
	engine  string // of the logins
	store   *memstore.Store
	lines   map[string]*recordLine // by the endpoint of their logins
	expires bool                   // the store deletes records
	mode    dynamolock.Mode
	stop    context.CancelFunc
	done    sync.WaitGroup
}

func startSimulatedDynamo(_ context.Context, c casting) (simulatedStage, error) {
	return startRecords(c, simulatedLatency(c.Seed)), nil
}

// startSimulatedTTL starts a store that deletes records which have not changed for some time, held or not. For every second seed it
// also forgets free records soon.
func startSimulatedTTL(ctx context.Context, c casting) (simulatedStage, error) {
	s := startRecords(c, simulatedLatency(c.Seed))
	s.expires = true
	free := ttlPatience
	if c.Seed%2 == 0 {
		free = dynamoLease / 8
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.done.Go(func() {
		for sleep(ctx, dynamoLease/8) {
			s.store.Expire(free, ttlPatience)
		}
	})
	return s, nil
}

// startSimulatedClosed is startSimulatedDynamo for clients whose locks do not expire.
func startSimulatedClosed(_ context.Context, c casting) (simulatedStage, error) {
	s := startRecords(c, simulatedLatency(c.Seed))
	s.mode = dynamolock.FailClosedFenced
	return s, nil
}

func startRecords(c casting, latency time.Duration) *recordStage {
	s := &recordStage{
		engine: "dynamodb",
		store:  &memstore.Store{Latency: latency, Lag: 100 * time.Millisecond},
		lines:  map[string]*recordLine{}, stop: func() {},
	}
	s.lines[operatorLine] = newRecordLine("operator", s.store)
	for slot := range c.Slots {
		s.lines[strconv.Itoa(slot)] = newRecordLine(fmt.Sprintf("client %d", slot), s.store)
	}
	return s
}

// deck has no duplicated requests where leases never expire: the SDK's retries are off, and a copy of an acquisition that was
// answered would hold its key for ever.
func (s *recordStage) deck() []nemesis.Kind {
	deck := append(slices.Clone(dynamoDeck), nemesis.ServerPaused)
	if s.mode == dynamolock.FailOpen {
		deck = append(deck, nemesis.Duplicated)
	}
	if s.store.Revisions {
		deck = append(deck, nemesis.PrimaryLags, nemesis.PrimaryDeposed, nemesis.PrimaryDeposed)
	}
	return deck
}

func (s *recordStage) servers() int { return 1 }

func (s *recordStage) login(slot int) login { return s.loginOver(strconv.Itoa(slot)) }

func (s *recordStage) direct() login { return s.loginOver(operatorLine) }

func (s *recordStage) loginOver(endpoint string) login {
	return login{Engine: s.engine, Endpoint: endpoint, Lease: dynamoLease, Mode: s.mode}
}

func (s *recordStage) plug(l login) cable { return &recordCable{line: s.lines[l.Endpoint]} }

func (s *recordStage) strike(_ context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	switch f.Kind {
	case nemesis.ServerPaused:
	case nemesis.PrimaryLags, nemesis.PrimaryDeposed:
		return s.strikePrimary(f)
	default:
		return s.lines[strconv.Itoa(f.Client)].strike(f)
	}
	// All requests wait for the server.
	return "server", afflict(slices.Collect(maps.Values(s.lines)), *stalled(f.For)), nil
}

func (s *recordStage) heal(context.Context) error {
	for _, line := range s.lines {
		_ = line.heal() // it cannot fail
	}
	return nil
}

func (s *recordStage) keeps(key string, token uint64) bool {
	for _, h := range s.store.Record(key).Holders {
		if uint64(h.Token) == token {
			return true
		}
	}
	return false
}

func (s *recordStage) settled() bool { return true }

func (s *recordStage) excess() error {
	var errs []error
	for _, line := range s.lines {
		errs = append(errs, line.requests.excess(line.name))
	}
	return errors.Join(errs...)
}

func (s *recordStage) stall() time.Duration { return 0 }

func (s *recordStage) residue(_ context.Context, keys []string) (left []string, err error) {
	for _, key := range keys {
		rec := s.store.Record(key)
		for _, h := range rec.Holders {
			left = append(left, fmt.Sprintf("%s: held by %s with token %d", key, h.Owner, h.Token))
		}
		if rec.Version == nil && !s.expires {
			left = append(left, key+": no record, so the next token need not be greater")
		}
	}
	return left, nil
}

func (s *recordStage) close() {
	s.stop()
	s.done.Wait()
}
