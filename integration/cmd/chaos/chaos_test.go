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

// engines are all that a run can be on.
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

// newSeed is that of HOLDFAST_SEED, or a new one.
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

// performed is a run that was possible; what it has found is for the caller.
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

// TestChaos guards everything at once: processes compete for locks on real servers, the faults of a plan befall them, and nothing
// that a lock must not do is found in the history. HOLDFAST_CHAOS=30m makes it long, HOLDFAST_SEED repeats a schedule of faults.
//
// It fails as well if the run was one in which nothing happened.
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each waits for most of its time
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

// TestPlanted guards the sense of the whole: a process that is stopped between the look at its lock and its write ruins an
// unfenced register, and not a fenced one. It is a part of each run, too.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
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
				t.Errorf("the file says otherwise than the run: %v", violations)
			}
			if err := checkPlanted(records); err != nil {
				t.Errorf("the file says otherwise than the run: %v", err)
			}
		})
	}
}

// TestSabotage guards that a run finds what there is to be found, and says what it is: processes that lie about their locks make
// it fail, by the rule that they break.
func TestSabotage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sabotage sabotage
		engine   string
		kinds    []nemesis.Kind
		workers  int
		length   time.Duration
		long     bool // more than a run of all tests has time for
		rule     string
	}{
		// Most pauses hit somebody who holds a lock, but not all do.
		{ignoresLoss, "zookeeper", []nemesis.Kind{nemesis.ClientPaused}, 2, 8 * time.Second, false, history.RuleExclusion},
		// A partition of the servers with their clients, in which heartbeats make the difference. Many clients would not even need
		// them: the first request that is not answered tells those who send some.
		{noHeartbeats, "zookeeper", []nemesis.Kind{nemesis.FollowerCutOff, nemesis.FollowerCutOff, nemesis.FollowerCutOff}, 1, 20 * time.Second, true, history.RuleExclusion},
		// One client of six writes a time to live, and the others are to remove it.
		{blindToTTL, "ttl", []nemesis.Kind{nemesis.ClientKilled}, 2, 20 * time.Second, false, history.RuleExclusion},
		{constantTokens, "dynamodb", []nemesis.Kind{nemesis.ClockJump}, 2, 3 * time.Second, false, history.RuleTokens},
	} {
		if _, long := os.LookupEnv("HOLDFAST_CHAOS"); c.long && !long {
			continue // make test-long has it
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
						t.Errorf("the run had violations and passed, or has no pictures of them: %v, %q", v.err(), v.pictures)
					}
					return
				}
			}
			t.Errorf("no run has found that the rule of %s was broken", c.rule)
		})
	}
}

// TestCheckPlanted guards the judgement of the directed scenario: it must not be content with a pause that has shown nothing.
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
		"as it should be":   {[]history.Record{fenced(2, true), plain(2), fenced(1, false), plain(1)}, ""},
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

// TestDiverged guards that a run tells of servers that differ from each other, does not blame the locks for it, and is silent about it
// otherwise.
func TestDiverged(t *testing.T) {
	const line = "server 1 shows 1 znode that the others have not"
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
