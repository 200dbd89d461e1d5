package report

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMedianInterval guards the ranks whose values are the ends of the interval.
func TestMedianInterval(t *testing.T) {
	t.Parallel()
	ascending := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[n-1-i] = float64(i + 1)
		}
		return s
	}
	if MedianInterval(ascending(enough-1)).Low != 1 || 2*binomial(enough, 0) > 1-confidence || 2*binomial(enough-1, 0) <= 1-confidence {
		t.Errorf("%d values are said to be enough for an interval", enough)
	}
	// The ranks are those of the tables for the sign test at 0.05, two-sided.
	for _, c := range []struct {
		n    int
		want Interval
	}{
		{1, Interval{1, 1, 1}},
		{2, Interval{1.5, 1, 2}},
		{5, Interval{3, 1, 5}},
		{6, Interval{3.5, 1, 6}},
		{9, Interval{5, 2, 8}},
		{30, Interval{15.5, 10, 21}},
		{40, Interval{20.5, 14, 27}},
	} {
		if got := MedianInterval(ascending(c.n)); got != c.want {
			t.Errorf("MedianInterval(%d values) = %v, want %v", c.n, got, c.want)
		}
	}
}

// TestMedianIntervalCoverage guards the confidence, on samples of a strongly
// asymmetric distribution.
func TestMedianIntervalCoverage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	const runs = 4000
	hits := 0
	for range runs {
		s := make([]float64, 30)
		for i := range s {
			s[i] = r.ExpFloat64()
		}
		if in := MedianInterval(s); in.Low <= math.Ln2 && math.Ln2 <= in.High {
			hits++
		}
	}
	if got := float64(hits) / runs; got < confidence || got > 0.98 {
		t.Errorf("the interval contains the true median in %.3f of all samples, want %.2f or a little more", got, confidence)
	}
}

// TestBinomial guards the distribution from which the ranks come.
func TestBinomial(t *testing.T) {
	t.Parallel()
	sum := 0.0
	for i := range 31 {
		sum += binomial(30, i)
	}
	if math.Abs(sum-1) > 1e-9 || math.Abs(binomial(4, 2)-0.375) > 1e-12 {
		t.Errorf("sum of binomial(30, i) = %v, binomial(4, 2) = %v; want 1 and 0.375", sum, binomial(4, 2))
	}
}
