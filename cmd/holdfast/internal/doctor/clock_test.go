package doctor

import (
	"math/rand/v2"
	"testing"
	"time"
)

// clocks makes a comparison with a server whose clock is ahead, and runs at
// another rate: it is looked at so often for so long, and shows its time in a
// unit. Requests take up to a latency, on either way.
func clocks(rate float64, ahead, span, each, latency, unit time.Duration) *comparison {
	c := &comparison{unit: unit}
	begin := time.Now()
	random := rand.New(rand.NewPCG(1, uint64(span)))
	for at := time.Duration(0); at <= span; at += each {
		there := at + time.Duration(random.Int64N(int64(latency)))
		answered := there + time.Duration(random.Int64N(int64(latency)))
		shown := begin.Round(0).Add(ahead + time.Duration(float64(there)*(1+rate))).Truncate(unit)
		c.add(begin.Add(at), begin.Add(answered), shown)
	}
	return c
}

// TestDifference guards that the difference of two clocks is within the bounds
// that are told.
func TestDifference(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Millisecond, -3 * time.Second, time.Hour} {
		for _, unit := range []time.Duration{time.Millisecond, time.Second} {
			got, within := clocks(0, ahead, 2*time.Second, 20*time.Millisecond, 10*time.Millisecond, unit).difference()
			if (got-ahead).Abs() > within || within > 100*time.Millisecond {
				t.Errorf("%v ahead in units of %v: told %v, give or take %v", ahead, unit, got, within)
			}
		}
	}
}

// TestSkew guards that a difference of wall clocks is told, and no more.
func TestSkew(t *testing.T) {
	is(t, clocks(0, time.Hour, time.Second, 10*time.Millisecond, time.Millisecond, time.Millisecond).skew("it"), OK, "it is 1h0m0s ahead of", "")
	is(t, clocks(0, -time.Hour, time.Second, 10*time.Millisecond, time.Millisecond, time.Millisecond).skew("it"), OK, "it is 1h0m0s behind", "")
}

// TestJudgeClock guards the difference from which DynamoDB refuses signatures.
func TestJudgeClock(t *testing.T) {
	for ahead, status := range map[time.Duration]Status{0: OK, 4 * time.Minute: OK, -4 * time.Minute: OK, 6 * time.Minute: Problem, -6 * time.Minute: Problem} {
		f := judgeClock(clocks(0, ahead, 2*time.Second, 20*time.Millisecond, time.Millisecond, time.Second))
		if f.Status != status {
			t.Errorf("%v ahead: %+v, want %s", ahead, f, status)
		}
	}
}
