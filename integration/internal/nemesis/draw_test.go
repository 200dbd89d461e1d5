package nemesis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// ensemble is the deck of a run on ZooKeeper, and table that of one on DynamoDB.
var (
	ensemble = []Kind{
		LostReply, LostRequest, Cut, BlackHole, OneWayIn, OneWayOut, HalfOpen, Stall, FollowerCutOff, LeaderCutOff, LinkCut,
		LeaderKilled, LeaderPaused, FollowerPaused, RollingRestart, LinkTurned, LimitsChanged, ClientPaused, ClientKilled, ClockJump,
		BreakHolder,
	}
	table = []Kind{
		LostReply, LostRequest, LateRequest, Cut, BlackHole, OneWayIn, OneWayOut, HalfOpen, Stall, Throttled, Broken,
		ServerPaused, ClientPaused, ClientKilled, ClockJump, BreakHolder,
	}
)

func shape(deck []Kind, length time.Duration) Shape {
	return Shape{Clients: 6, Servers: 3, Keys: 4, Lease: 2 * time.Second, Length: length, Deck: deck}
}

// text is a plan, a line for each fault.
func text(plan []Fault) string {
	var b strings.Builder
	for _, f := range plan {
		fmt.Fprintf(&b, "%+v\n", f)
	}
	return b.String()
}

// TestGolden guards the seeds in failure reports: a change of the generator changes what they mean, and must be deliberate.
func TestGolden(t *testing.T) {
	sum := sha256.Sum256([]byte(text(Draw(1, shape(ensemble, time.Minute)))))
	if got, want := hex.EncodeToString(sum[:8]), "48649a2591f46e9f"; got != want {
		t.Errorf("the plan of seed 1 has the digest %s, want %s: seeds have changed their meaning. If that is intended, "+
			"accept the new digest. The plan is now:\n%s", got, want, text(Draw(1, shape(ensemble, time.Minute))))
	}
}

// TestBounds guards what runs rely on: every kind of the deck within 75 seconds, faults in order and within the bounds of the
// shape, a calm tail, and server faults that never overlap and leave a lease's time to recover in between.
func TestBounds(t *testing.T) {
	for name, deck := range map[string][]Kind{"ensemble": ensemble, "table": table} {
		t.Run(name, func(t *testing.T) {
			incomplete := 0
			for seed := range uint64(500) {
				s := shape(deck, 75*time.Second)
				plan := Draw(seed, s)
				count := make(map[Kind]int)
				var last, recovered time.Duration
				for i, f := range plan {
					count[f.Kind]++
					if f.N != i+1 || f.At < last || f.At+f.For > s.Length-s.Tail() || f.For <= 0 || f.For > 3*s.Lease ||
						f.Client < 0 || f.Client >= s.Clients || f.Server < 0 || f.Server >= s.Servers || f.Key < 0 || f.Key >= s.Keys ||
						f.Jump < -5*s.Lease || f.Jump > 5*s.Lease || f.Jump == 0 || !slices.Contains(deck, f.Kind) {
						t.Fatalf("seed %d: out of bounds: %+v after %v", seed, f, last)
					}
					last = f.At
					if f.Kind == ClientPaused && f.For <= s.Lease {
						t.Fatalf("seed %d: a client is paused for less than its lease: %+v", seed, f)
					}
					if f.Kind.OfServers() {
						if f.At < recovered {
							t.Fatalf("seed %d: the servers had until %v to recover: %+v", seed, recovered, f)
						}
						recovered = f.At + f.For + s.Lease
					}
				}
				if len(plan) < 15 {
					t.Fatalf("seed %d has only %d faults", seed, len(plan))
				}
				missing := len(deck) - len(count)
				if missing > 1 {
					t.Fatalf("seed %d lacks %d kinds of fault", seed, missing)
				}
				incomplete += missing
			}
			if incomplete > 50 {
				t.Errorf("%d of 500 seeds lack a kind of fault", incomplete)
			}
		})
	}
}
