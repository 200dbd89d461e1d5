package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
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
	return settings{
		Engine: engine, Seed: newSeed(t), Length: length, Clients: 6, Workers: 2, Keys: 4,
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
// It also fails if too little happened in the run.
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, engine := range tried() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each mostly waits
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
				f.Refused < 1 || f.WentBack < 1 || calls < 8 {
				t.Errorf("too little has happened: want %d holds, losses, processes killed and paused, 8 kinds of fault, and writes refused", least)
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

// TestPlanted guards that a process paused between the look at its lock and its write corrupts an unfenced register, but not
// a fenced one. Every run includes this scenario.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for _, engine := range tried() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := newSettings(t, engine, time.Nanosecond)
			r, err := prepare(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			if err := r.planted(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.journal.close(); err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(s.Dir + "/" + historyFile)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			records, err := history.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			if violations := history.Check(records, history.Rules{Lease: r.lease}); len(violations) > 0 {
				t.Errorf("the file differs from the run: %v", violations)
			}
			if err := checkPlanted(records); err != nil {
				t.Errorf("the file differs from the run: %v", err)
			}
		})
	}
}

// TestSabotage guards that a run catches injected faulty clients, and reports the rule that they break.
func TestSabotage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sabotage sabotage
		engine   string
		kinds    []nemesis.Kind
		workers  int
		length   time.Duration
		long     bool // too long for a run of all tests
		rule     string
	}{
		// Most pauses hit a holder, but not all.
		{ignoresLoss, "zookeeper", []nemesis.Kind{nemesis.ClientPaused}, 2, 8 * time.Second, false, history.RuleExclusion},
		// A partition of the servers with their clients, in which heartbeats matter. Busy clients would not even need them:
		// their first unanswered request shows the loss.
		{noHeartbeats, "zookeeper", []nemesis.Kind{nemesis.FollowerCutOff, nemesis.FollowerCutOff, nemesis.FollowerCutOff}, 1, 20 * time.Second, true, history.RuleExclusion},
		// One client of six writes a time to live, and the others must remove it.
		{blindToTTL, "ttl", []nemesis.Kind{nemesis.ClientKilled}, 2, 20 * time.Second, false, history.RuleExclusion},
		{constantTokens, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 3 * time.Second, false, history.RuleTokens},
	} {
		if c.long && !long {
			continue
		}
		t.Run(string(c.sabotage), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				s := newSettings(t, c.engine, c.length)
				s.Kinds, s.Sabotage, s.Workers = c.kinds, c.sabotage, c.workers
				s.Seed |= 1 // servers that are patient with each other: see startZooKeeper
				v := performed(t, s)
				if slices.ContainsFunc(v.violations, func(v history.Violation) bool { return v.Rule == c.rule }) {
					if v.err() == nil || len(v.pictures) == 0 {
						t.Errorf("the run passed despite violations, or has no pictures of them: %v, %q", v.err(), v.pictures)
					}
					return
				}
			}
			t.Errorf("no run reported a violation of the rule of %s", c.rule)
		})
	}
}

// TestCheckPlanted guards that the directed scenario fails if its pause has shown nothing.
func TestCheckPlanted(t *testing.T) {
	fenced := func(token uint64, accepted bool) history.Record {
		return history.Record{What: history.Wrote, Key: plantedKey, Token: token, Fenced: true, Accepted: accepted}
	}
	plain := func(token uint64) history.Record {
		return history.Record{What: history.Wrote, Key: plantedKey, Token: token, Accepted: true}
	}
	for name, c := range map[string]struct {
		records []history.Record
		want    string // part of the error; "": none
	}{
		"correct":           {[]history.Record{fenced(2, true), plain(2), fenced(1, false), plain(1)}, ""},
		"nothing":           {nil, "shown nothing"},
		"in order":          {[]history.Record{fenced(1, true), plain(1), fenced(2, true), plain(2)}, "shown nothing"},
		"fence is open":     {[]history.Record{fenced(2, true), plain(2), fenced(1, true), plain(1)}, "went back from token 2 to 1"},
		"fence is not used": {[]history.Record{plain(2), plain(1)}, "did not refuse"},
		"another key":       {[]history.Record{{What: history.Wrote, Key: "key-0", Token: 2}, {What: history.Wrote, Key: "key-0", Token: 1}}, "shown nothing"},
	} {
		err := checkPlanted(c.records)
		if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestDiverged guards that a run reports servers that differ from each other without counting it as a violation, and prints
// nothing if they agree.
func TestDiverged(t *testing.T) {
	const line = "server 1 shows 1 znode that the others lack"
	for _, diverged := range [][]string{nil, {line}} {
		v := &verdict{diverged: diverged}
		var out strings.Builder
		if err := v.write(&out); err != nil {
			t.Fatal(err)
		}
		if v.err() != nil || strings.Contains(out.String(), "\ndiverged   "+line+"\n") != (diverged != nil) || strings.Count(out.String(), "diverged") != len(diverged) {
			t.Errorf("diverged %q: %v:\n%s", diverged, v.err(), out.String())
		}
	}
}
