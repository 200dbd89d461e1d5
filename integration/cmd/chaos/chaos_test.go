package main

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	verdicts "github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// engines are those that a run can use.
var engines = []string{"zookeeper", "reconfig", "dynamodb", "ttl"}

// runFor is how long the runs of TestChaos last, on each engine.
func runFor(t *testing.T) time.Duration {
	t.Helper()
	text, ok := os.LookupEnv("HOLDFAST_CHAOS")
	if !ok {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("HOLDFAST_CHAOS=%q: want a duration", text)
	}
	return d
}

// newSeed is HOLDFAST_SEED, or a random seed.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	text, ok := os.LookupEnv("HOLDFAST_SEED")
	if !ok {
		return rand.Uint64N(1e9)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("HOLDFAST_SEED=%q: want a number", text)
	}
	return seed
}

// newSettings are those of a run in a test. Its directory is kept if the test fails.
func newSettings(t *testing.T, engine string, length time.Duration) settings {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-chaos-"+engine+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("history, logs and pictures are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	clients := 6
	if !long {
		clients = 4 // others test beside it
	}
	return settings{
		Engine: engine, Seed: newSeed(t), Length: length, Grants: 60, Clients: clients, Workers: 2, Keys: 6,
		Dir: dir, Progress: t.Output(),
	}
}

// performed performs a run and fails the test if it cannot; the caller judges the findings.
func performed(t *testing.T, s settings) *verdict {
	t.Helper()
	t.Logf("%s, HOLDFAST_SEED=%d", s.Engine, s.Seed)
	ctx, cancel := context.WithTimeout(t.Context(), s.Length+5*time.Minute)
	defer cancel()
	v, err := play(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := v.write(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	return v
}

// TestChaos guards everything at once: processes compete for locks on real servers under the faults of a plan, and the
// history contains no violation. HOLDFAST_CHAOS=30m makes it long, HOLDFAST_SEED repeats a schedule of faults.
//
// It is inconclusive if too little happened in the run. Each begins with the scenario of planted.go.
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, engine := range tried() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each mostly waits
			verdicts.Begin(t)
			s := newSettings(t, engine, runFor(t))
			v := performed(t, s)
			if err := v.err(); err != nil {
				t.Error(err)
			}
			f := v.figures
			losses, calls := 0, 0
			for _, n := range f.Losses {
				losses += n
			}
			for _, outcomes := range f.Calls {
				calls += len(outcomes)
			}
			if least := int(s.Length.Seconds()); f.Holds < least || losses < 1 || f.Killed < 1 || f.Paused < 1 || len(f.Faults) < 8 ||
				f.Refused < 1 || f.WentBack < 1 || calls < 8 || f.Terms < 1 || f.Told < least || f.Shared < 1 || f.Permits < 1 ||
				f.Calls[history.Acquire][history.Mismatch] < 1 {
				verdicts.Inconclusive(t, "too little has happened: want %d holds and states told, terms, losses, processes killed and paused, 8 kinds of fault, and writes refused", least)
			}
		})
	}
}

// long says that this is no run of all tests, but one of chaos alone: .ci/run and make test-long have both.
var _, long = os.LookupEnv("HOLDFAST_CHAOS")

// tried returns the engines that a run tries: with all tests, only one of ZooKeeper and one of DynamoDB.
func tried() []string {
	if long {
		return engines
	}
	return []string{"zookeeper", "dynamodb"}
}

// TestSabotage guards that a run catches injected faulty clients, and reports the rule that they break.
func TestSabotage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sabotage sabotage
		engine   string
		kinds    []nemesis.Kind
		workers  int
		keys     int
		length   time.Duration
		long     bool   // not in a run of all tests, in which each rule is broken once
		rules    string // any of them
	}{
		// Most pauses hit a holder, but not all.
		{ignoresLoss, "zookeeper", []nemesis.Kind{nemesis.ClientPaused}, 2, 4, 8 * time.Second, true, history.RuleExclusion},
		// A partition of the servers with their clients, which do nothing but hold: see noHeartbeats. Few keys make it likely
		// that somebody on the other side waits for one that is held on this side. Leaders are killed because sooner or later
		// all clients are connected to the leader, and then no partition of a follower hits any.
		{noHeartbeats, "zookeeper", []nemesis.Kind{nemesis.FollowerCutOff, nemesis.FollowerCutOff, nemesis.LeaderKilled}, 1, 2, 45 * time.Second, true, history.RuleExclusion},
		// Two clients of six write a time to live, and the others must remove it. An item that is deleted under its holder is
		// given to another, or its holder or an observer misses it first.
		{blindToTTL, "ttl", []nemesis.Kind{nemesis.ClientKilled}, 2, 4, 20 * time.Second, true, history.RuleExclusion + ", " + history.RuleCause + " or " + history.RuleObserve},
		{leadsOn, "zookeeper", []nemesis.Kind{nemesis.ClientPaused}, 2, 4, 8 * time.Second, true, history.RuleExclusion},
		// Keys that several hold. One beside a few locks is enough.
		{hidesSharing, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 2, 3 * time.Second, true, history.RuleExclusion},
		{oneTooMany, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 2, 3 * time.Second, false, history.RuleExclusion},
		{keepsPermit, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 2, 3 * time.Second, false, history.RuleFree},
		{forgetsSharers, "dynamodb", []nemesis.Kind{nemesis.LostReply}, 2, 3, 3 * time.Second, false, history.RuleObserve},
		{givesBack, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, false, history.RuleTerm},
		{deafObserver, "zookeeper", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, true, history.RuleObserve},
		{tellsWaiters, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, true, history.RuleObserve},
		{constantTokens, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 4, 3 * time.Second, false, history.RuleTokens},
	} {
		if c.long && !long {
			continue
		}
		t.Run(string(c.sabotage), func(t *testing.T) {
			t.Parallel()
			verdicts.Begin(t)
			for range 3 {
				s := newSettings(t, c.engine, c.length)
				s.Kinds, s.Sabotage, s.Workers, s.Keys = c.kinds, c.sabotage, c.workers, c.keys
				s.Seed |= 1 // servers that are patient with each other: see startZooKeeper
				v := performed(t, s)
				if slices.ContainsFunc(v.violations, func(v history.Violation) bool { return strings.Contains(c.rules, v.Rule) }) {
					if v.err() == nil || len(v.pictures) == 0 {
						t.Errorf("the run passed despite violations, or has no pictures of them: %v, %q", v.err(), v.pictures)
					}
					return
				}
			}
			verdicts.Inconclusive(t, "no run reported a violation of the rule of %s", c.rules)
		})
	}
}
