package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	verdicts "github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// faulty describes the runs in which one kind of faulty client must be caught.
type faulty struct {
	sabotage sabotage
	engine   string
	kinds    []nemesis.Kind
	workers  int
	keys     int
	length   time.Duration
	real     where
	rules    string   // any of them
	engines  []string // the simulated engines on which it must be caught
}

// where says whether a faulty client has to be caught among real servers and processes, too. Journal and judge are the same there, so
// that is for what only these show: processes that stop, a partition, items that expire.
type where int

const (
	simulatedOnly where = iota
	inLongRuns          // not in a run of all tests
	inAllRuns
)

// Engines of simulations.
var (
	anyEngine     = []string{"zookeeper", "dynamodb"}
	onlyZooKeeper = []string{"zookeeper"}
)

var sabotages = []faulty{
	// Most pauses hit a holder, but not all.
	{ignoresLoss, "zookeeper", []nemesis.Kind{nemesis.ClientPaused}, 2, 4, 8 * time.Second, inLongRuns, history.RuleExclusion, anyEngine},
	// A partition of the servers with their clients, which do nothing but hold: see noHeartbeats. Few keys make it likely
	// that somebody on the other side waits for one that is held on this side. Leaders are killed because sooner or later
	// all clients are connected to the leader, and then no partition of a follower hits any.
	{noHeartbeats, "zookeeper", []nemesis.Kind{nemesis.FollowerCutOff, nemesis.FollowerCutOff, nemesis.LeaderKilled}, 1, 2, 45 * time.Second, inLongRuns, history.RuleExclusion, onlyZooKeeper},
	// Two clients of six write a time to live, and the others must remove it. An item that is deleted under its holder is
	// given to another, or its holder or an observer misses it first.
	{blindToTTL, "ttl", []nemesis.Kind{nemesis.ClientKilled}, 2, 4, 20 * time.Second, inLongRuns, history.RuleExclusion + ", " + history.RuleCause + " or " + history.RuleObserve, nil},
	{leadsOn, "zookeeper", []nemesis.Kind{nemesis.ClientPaused}, 2, 4, 8 * time.Second, simulatedOnly, history.RuleExclusion, anyEngine},
	// Keys that several hold. One beside a few locks is enough.
	{hidesSharing, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 2, 3 * time.Second, simulatedOnly, history.RuleExclusion, anyEngine},
	{oneTooMany, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 2, 3 * time.Second, simulatedOnly, history.RuleExclusion, anyEngine},
	{keepsPermit, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 2, 3 * time.Second, simulatedOnly, history.RuleFree, anyEngine},
	{forgetsSharers, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 3, 3 * time.Second, simulatedOnly, history.RuleObserve, anyEngine},
	{givesBack, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, simulatedOnly, history.RuleTerm, anyEngine},
	{deafObserver, "zookeeper", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, simulatedOnly, history.RuleObserve, anyEngine},
	{tellsWaiters, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, simulatedOnly, history.RuleObserve, anyEngine},
	{constantTokens, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, inAllRuns, history.RuleTokens, anyEngine},
}

// in makes the runs of these settings those of the faulty clients.
func (c *faulty) in(s settings) settings {
	s.Kinds, s.Sabotage, s.Workers, s.Keys = c.kinds, c.sabotage, c.workers, c.keys
	return s
}

// caught reports whether a verdict names the rule that is broken. Then it must also have pictures of it.
func (c *faulty) caught(t *testing.T, v *verdict) bool {
	t.Helper()
	if !slices.ContainsFunc(v.violations, func(v history.Violation) bool { return strings.Contains(c.rules, v.Rule) }) {
		return false
	}
	if v.err() == nil || len(v.pictures) == 0 {
		t.Errorf("the run passed despite violations, or has no pictures of them: %v, %q", v.err(), v.pictures)
	}
	return true
}

// TestSabotage guards that a run on real servers catches injected faulty clients, and reports the rule that they break.
func TestSabotage(t *testing.T) {
	t.Parallel()
	for _, c := range sabotages {
		if c.real == simulatedOnly || c.real == inLongRuns && !long {
			continue
		}
		t.Run(string(c.sabotage), func(t *testing.T) {
			t.Parallel()
			verdicts.Begin(t)
			for range 3 {
				s := c.in(newSettings(t, c.engine, c.length))
				s.Seed |= 1 // servers that are patient with each other: see startZooKeeper
				if c.caught(t, performed(t, s)) {
					return
				}
			}
			verdicts.Inconclusive(t, "no run reported a violation of the rule of %s", c.rules)
		})
	}
}

// simulatedTries is in how many runs in virtual time a faulty client must be caught.
const simulatedTries = 20

// TestSimulationSabotage guards that a simulation catches faulty clients, so that its looks, which are fewer than those of a run on
// real servers, miss nothing.
func TestSimulationSabotage(t *testing.T) {
	for _, c := range sabotages {
		for _, engine := range c.engines {
			t.Run(string(c.sabotage)+"/"+engine, func(t *testing.T) {
				t.Parallel()
				dir, first := keptDir(t, engine), newSeed(t)
				for i := range uint64(simulatedTries) {
					s := c.in(settings{Engine: engine, Seed: first + i, Length: c.length, Clients: 4})
					v, _, err := simulated(t, s, dir)
					if err != nil {
						t.Fatalf("seed %d: %v", s.Seed, err)
					}
					if c.caught(t, v) {
						t.Logf("caught in run %d", i+1)
						return
					}
				}
				t.Errorf("no run of %d from seed %d on reported a violation of the rule of %s", simulatedTries, first, c.rules)
			})
		}
	}
}
