package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// simulatedStage is a stage in virtual time, which also gives each process its network.
type simulatedStage interface {
	stage
	// plug connects a new process.
	plug(login) cable
	// keeps reports whether the engine still has a grant, of which it has confirmed that it was given back.
	keeps(key string, token uint64) bool
	// settled reports whether no server can have said that a session is over while the engine keeps its grants.
	settled() bool
	// excess says which client sent more requests than the bound; nil if none did.
	excess() error
}

// simulatedEngine is an engine of simulations.
type simulatedEngine struct {
	start   func(context.Context, casting) (simulatedStage, error)
	lease   time.Duration  // as in the logins of the stage
	endured []nemesis.Kind // faults that cost no lease
}

// simulations are the simulated engines, under the names that they have in real runs.
var simulations = map[string]simulatedEngine{
	"zookeeper": {
		startSimulatedZooKeeper, zooKeeperLease,
		append(passing, nemesis.ClockJump, nemesis.EventsLost, nemesis.HalfOpen, nemesis.WaiterDeleted),
	},
	"dynamodb": {startSimulatedDynamo, dynamoLease, append(passing, nemesis.ClockJump)},
	"mongodb":  {startSimulatedMongo, dynamoLease, append(passing, nemesis.ClockJump, nemesis.PrimaryLags)},
	"ttl":      {startSimulatedTTL, dynamoLease, append(passing, nemesis.ClockJump)},
	"closed":   {startSimulatedClosed, dynamoLease, append(passing, nemesis.ClockJump)},
}

// passing are faults that cost no lease, on any engine: they hit one request, one process, or one grant.
var passing = []nemesis.Kind{
	nemesis.LostReply, nemesis.LostRequest, nemesis.LateRequest, nemesis.ClientKilled, nemesis.ClientClosed, nemesis.BreakHolder,
}

// looksPerLease is how often a holder looks at its lock at most, while its lease is renewed. Virtual time is not the cost of a
// look.
const looksPerLease = 100

// simulation is the world of one run, in a bubble of package synctest.
type simulation struct {
	stage   simulatedStage
	journal *journal
	ends    sync.WaitGroup // of all goroutines of processes
	last    atomic.Int64   // stamp

	mu      sync.Mutex
	log     strings.Builder
	wrong   []error            // that the engine shows, and no history
	granted map[string][]grant // by process
}

// grant is one that the engine may still have.
type grant struct {
	key   string
	token uint64
}

func newSimulation() *simulation {
	return &simulation{granted: map[string][]grant{}}
}

func (s *simulation) world(c settings) world {
	return world{
		start: func(ctx context.Context, cast casting) (stage, error) {
			var err error
			s.stage, err = simulations[c.Engine].start(ctx, cast)
			return s.stage, err
		},
		process: func(j *journal, config clientConfig) (process, error) {
			s.journal = j
			config.Look = config.Login.Lease / looksPerLease
			return s.launch(config), nil
		},
		now:    s.now,
		steady: true, endured: names(simulations[c.Engine].endured),
		again: fmt.Sprintf("make sim ENGINE=%s SEED=%d HOURS=0", c.Engine, c.Seed),
	}
}

// now is a stamp. Many things happen at one virtual moment, in an order that matters: so no two stamps are the same, and
// later ones are greater, by a nanosecond at least.
func (s *simulation) now() int64 {
	for {
		last := s.last.Load()
		at := max(last+1, time.Now().UnixNano())
		if s.last.CompareAndSwap(last, at) {
			return at
		}
	}
}

// say adds to the log.
func (s *simulation) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.log, "%d "+format+"\n", append([]any{s.now()}, args...)...)
}

// confirm compares the record of a confirmed release, or end of a client, with the grants of the engine.
func (s *simulation) confirm(rec history.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec.What != history.Return || rec.Outcome != history.OK {
		return
	}
	given := []grant{{rec.Key, rec.Token}}
	switch rec.Call {
	case history.Acquire, history.Try:
		s.granted[rec.Process] = append(s.granted[rec.Process], given...)
		return
	case history.Close:
		given = s.granted[rec.Process]
	case history.Release, history.Resign:
	default:
		return
	}
	if !s.stage.settled() {
		return
	}
	for _, g := range given {
		if s.stage.keeps(g.key, g.token) {
			s.wrong = append(s.wrong, fmt.Errorf("released: key %q: %s by process %s returned nil, and the engine still has the grant with token %d",
				g.key, rec.Call, rec.Process, g.token))
		}
	}
}

// awake reports a record that a process made while it was paused: then pauses test nothing.
func awake(records []history.Record) error {
	paused := map[string]int64{} // since when
	for _, rec := range records {
		since, ok := paused[rec.Process]
		switch {
		case rec.What == history.Stopped:
			paused[rec.Process] = rec.At
		case rec.What == history.Resumed, rec.What == history.Killed:
			delete(paused, rec.Process)
		case ok && rec.At > since+int64(time.Microsecond): // a moment in which calls under way get their stamps
			return fmt.Errorf("paused: process %s made the record %+v while it was paused", rec.Process, rec)
		}
	}
	return nil
}

// keep writes what there is of a run that has failed: its log, history and verdict.
func (s *simulation) keep(dir string, v *verdict) error {
	write := func(name string, text *strings.Builder) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o644)
	}
	errs := []error{write("clients.log", &s.log)}
	var said, lines strings.Builder
	if v != nil {
		errs = append(errs, v.write(&said), write("verdict.txt", &said))
	}
	if s.journal != nil {
		out := json.NewEncoder(&lines)
		for _, rec := range s.journal.all() {
			errs = append(errs, out.Encode(rec))
		}
		errs = append(errs, write(historyFile, &lines))
	}
	return errors.Join(errs...)
}

// quietEpisodes is one of how many runs has no faults, and clients that do nothing for long while they hold a lock, or wait.
// None has on DynamoDB, where a request has no turn, and so may wait for as many long holds as there are.
const quietEpisodes = 4

// mildEpisodes is one of how many runs has only faults for which no lease runs out.
const mildEpisodes = 4

// names are the names of kinds of faults.
func names(kinds []nemesis.Kind) (names []string) {
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return names
}

// episode draws one run from a seed. It fits into a few minutes, so that there are many.
func episode(engine string, seed uint64) settings {
	r := rand.New(rand.NewPCG(seed, 1<<32))
	between := func(least, most int) int { return least + r.IntN(most-least+1) }
	s := settings{
		Engine: engine, Seed: seed,
		Length:  time.Duration(between(20, 60)) * simulations[engine].lease,
		Clients: between(3, 6), Workers: between(1, 3), Keys: between(2, 6),
	}
	if r.IntN(3) == 0 && !engineOf(engine).endless {
		s.Owners = between(1, 2)
	}
	if seed%quietEpisodes == 0 && engine == "zookeeper" { // without a fault no violation has an excuse
		s.Quiet, s.Workers = true, 1
	}
	if seed%mildEpisodes == 1 {
		s.Kinds = simulations[engine].endured
	}
	return s
}

// simulated performs a run in virtual time, and says how long it took by that. It keeps what it has in a directory below
// parent if anything is wrong.
func simulated(t *testing.T, s settings, parent string) (v *verdict, took time.Duration, err error) {
	t.Helper()
	s.Dir = filepath.Join(parent, fmt.Sprintf("%s-%d", s.Engine, s.Seed))
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, 0, err
	}
	sim := newSimulation()
	defer func() {
		if p := recover(); p != nil { // of synctest, that goroutines wait for ever
			err = errors.Join(fmt.Errorf("%s, seed %d: %v", s.Engine, s.Seed, p), sim.keep(s.Dir, nil))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		v, err = playIn(t.Context(), s, sim.world(s))
		took = time.Since(began)
		sim.ends.Wait()
		time.Sleep(time.Minute) // requests that are in flight arrive
		if sim.stage != nil {
			err = errors.Join(append(sim.wrong, err, sim.stage.excess())...)
		}
		if sim.journal != nil {
			err = errors.Join(err, awake(sim.journal.all()))
		}
	})
	if err == nil && v.err() == nil {
		return v, took, os.RemoveAll(s.Dir)
	}
	return v, took, errors.Join(err, sim.keep(s.Dir, v))
}
