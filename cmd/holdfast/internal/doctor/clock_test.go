package doctor

import (
	"math"
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

// TestRate guards that the bounds of a rate hold the truth, and are narrow
// enough to tell what a margin makes up for.
func TestRate(t *testing.T) {
	for _, test := range []struct {
		each, unit time.Duration
		wide       float64
	}{
		{5 * time.Millisecond, time.Millisecond, 0.02},
		{50 * time.Millisecond, time.Second, 0.1},
	} {
		for _, rate := range []float64{0, 0.001, -0.001, 0.2, -0.2, 1, -0.9} {
			least, most := clocks(rate, time.Hour, 3*time.Second, test.each, 5*time.Millisecond, test.unit).rate()
			if least > rate+1e-6 || most < rate-1e-6 || math.Abs(rate) < 0.5 && most-least > test.wide {
				t.Errorf("rate %v, in units of %v: told %v to %v", rate, test.unit, least, most)
			}
		}
	}
}

// TestJudgeRate guards what is said of rates: a clock that runs too fast or too
// slow is warned of, one within the margin is not, and too short a look tells
// nothing.
func TestJudgeRate(t *testing.T) {
	for _, test := range []struct {
		rate   float64
		span   time.Duration
		status Status
		found  string
	}{
		{0, 3 * time.Second, OK, "makes up for 5%"},
		{0.02, 3 * time.Second, OK, "makes up for 5%"},
		{0.1, 3 * time.Second, Warning, "makes up for 5%"},
		{-0.1, 3 * time.Second, Warning, "makes up for 5%"},
		{0, 100 * time.Millisecond, OK, "too short to tell"},
		{0, 0, OK, "too short to tell"},
	} {
		f := clocks(test.rate, 0, test.span, 10*time.Millisecond, 5*time.Millisecond, time.Millisecond).judge("it", allowed(10*time.Second))
		cure := ""
		if test.status != OK {
			cure = "NTP"
		}
		is(t, f, test.status, test.found, cure)
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

// TestAllowed guards that what rates may differ by is what the libraries keep off
// a lease.
func TestAllowed(t *testing.T) {
	for lease, want := range map[time.Duration]float64{10 * time.Second: 0.05, time.Minute: 0.05, 500 * time.Millisecond: 0.1} {
		if got := allowed(lease); math.Abs(got-want) > 1e-9 {
			t.Errorf("allowed(%v) = %v, want %v", lease, got, want)
		}
	}
}
