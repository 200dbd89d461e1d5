package main

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	verdicts "github.com/holdfast-go/holdfast/integration/internal/verdict"
)

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

// newSettings are the settings of a run in a test. Its directory is kept if the test fails.
func newSettings(t *testing.T, engine string, length time.Duration) settings {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-chaos-"+engine+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("history and logs are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	clients := 6
	if _, long := os.LookupEnv("HOLDFAST_CHAOS"); !long {
		clients = 4 // other tests run beside it
	}
	return settings{
		Engine: engine, Seed: newSeed(t), Length: length, Grants: 60, Clients: clients, Workers: 2, Keys: 6,
		Dir: dir,
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
// It is inconclusive if too little happened in the run.
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, engine := range engineNames() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each mostly waits
			verdicts.Begin(t)
			s := newSettings(t, engine, runFor(t))
			v := performed(t, s)
			if err := v.err(); err != nil {
				t.Error(err)
			}
			f, least := v.figures, int(s.Length.Seconds())
			if f.Holds < least || f.Whats[history.Told] < least || len(f.Losses) < 1 || f.Whats[history.Killed] < 1 ||
				f.Whats[history.Stopped] < 1 || len(f.Faults) < 8 || len(f.Calls) < 8 || f.Terms < 1 || f.Shared < 1 || f.Permits < 1 {
				verdicts.Inconclusive(t, "too little has happened: want %d holds and told states, terms, losses, stops, kills, 8 faults", least)
			}
		})
	}
}
