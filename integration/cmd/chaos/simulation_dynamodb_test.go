package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// simulatedTable is the name of the table of each simulation.
const simulatedTable = "locks"

// simulatedLatency is the least time of a request there and back, from the seed: the longer it is, the more happens meanwhile.
func simulatedLatency(seed uint64) time.Duration { return time.Millisecond << (seed % 6) }

// operatorLine is the endpoint of the operator, whom only faults of the server affect.
const operatorLine = "operator"

// tableStage is a DynamoDB in the test's process and in virtual time, and a line to it for each slot.
type tableStage struct {
	db     *dynamofake.DB
	lines  map[string]*tableLine // by the endpoint of their logins
	reaper *reaper               // nil: nothing expires
	mode   dynamolock.Mode
}

func startSimulatedDynamo(ctx context.Context, c casting) (simulatedStage, error) {
	return startTable(ctx, c)
}

// startSimulatedTTL is startSimulatedDynamo with a reaper, as startTTL is startDynamo.
func startSimulatedTTL(ctx context.Context, c casting) (simulatedStage, error) {
	s, err := startTable(ctx, c)
	if err == nil {
		s.reaper = startReaper(s.db.Client(), simulatedTable)
	}
	return s, err
}

// startSimulatedClosed is startSimulatedDynamo for clients whose locks do not expire.
func startSimulatedClosed(ctx context.Context, c casting) (simulatedStage, error) {
	s, err := startTable(ctx, c)
	if err == nil {
		s.mode = dynamolock.FailClosedFenced
	}
	return s, err
}

func startTable(ctx context.Context, c casting) (*tableStage, error) {
	s := &tableStage{db: dynamofake.New(), lines: map[string]*tableLine{}}
	s.db.Latency, s.db.Lag = simulatedLatency(c.Seed), 100*time.Millisecond
	if err := dynamolock.CreateTable(ctx, s.db.Client(), &dynamolock.Options{Table: simulatedTable}); err != nil {
		return nil, err
	}
	s.lines[operatorLine] = newTableLine("operator", s.db)
	for slot := range c.Slots {
		s.lines[strconv.Itoa(slot)] = newTableLine(fmt.Sprintf("client %d", slot), s.db)
	}
	return s, nil
}

// deck is that of dynamoStage.
func (s *tableStage) deck() []nemesis.Kind {
	deck := slices.Clone(dynamoDeck)
	if s.reaper == nil {
		deck = append(deck, nemesis.ClockJump) // see there
	}
	return append(deck, nemesis.ServerPaused)
}

func (s *tableStage) servers() int { return 1 }

func (s *tableStage) login(slot int) login {
	l := s.loginOver(strconv.Itoa(slot))
	if s.reaper != nil && slot%3 == 0 {
		l.Expiry = ttlAttribute
	}
	return l
}

func (s *tableStage) direct() login { return s.loginOver(operatorLine) }

func (s *tableStage) loginOver(endpoint string) login {
	l := login{Engine: "dynamodb", Endpoint: endpoint, Table: simulatedTable, Lease: dynamoLease, Mode: s.mode}
	if s.reaper != nil {
		l.TTL = ttlAttribute
	}
	return l
}

func (s *tableStage) plug(l login) cable { return newTableCable(s.lines[l.Endpoint]) }

func (s *tableStage) strike(_ context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	if f.Kind != nemesis.ServerPaused {
		return s.lines[strconv.Itoa(f.Client)].strike(f)
	}
	// All that arrives waits for the server.
	var ends []func(context.Context) error
	for _, line := range s.lines {
		ends = append(ends, line.afflict(stalled(f.For)))
	}
	return "server", func(ctx context.Context) error {
		for _, end := range ends {
			_ = end(ctx) // it cannot fail
		}
		return nil
	}, nil
}

func (s *tableStage) heal(context.Context) error {
	for _, line := range s.lines {
		line.heal()
	}
	return nil
}

// keeps looks at locks that exclude all others: of those who share a key, an item may name one that has left.
func (s *tableStage) keeps(key string, token uint64) bool {
	item := s.db.Item(simulatedTable, itemKey(key))
	_, shared := item["holdfastHolders"]
	return !shared && attribute(item, "fencingToken") == strconv.FormatUint(token, 10) && attribute(item, "leaseDurationMs") != "1"
}

func (s *tableStage) excess() error {
	var errs []error
	for _, line := range s.lines {
		errs = append(errs, line.requests.excess(line.name))
	}
	return errors.Join(errs...)
}

func (s *tableStage) stall() time.Duration { return 0 }

func (s *tableStage) residue(_ context.Context, keys []string) (left, diverged []string, err error) {
	return leftItems(s.db.Items(simulatedTable), keys, s.reaper != nil), nil, nil
}

func (s *tableStage) close() {
	if s.reaper != nil {
		s.reaper.stop()
	}
}
