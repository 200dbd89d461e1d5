package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMedianInterval(t *testing.T) {
	t.Parallel()
	ascending := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[n-1-i] = float64(i + 1)
		}
		return s
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
		if got := medianInterval(ascending(c.n)); got != c.want {
			t.Errorf("medianInterval(%d values) = %v, want %v", c.n, got, c.want)
		}
	}
}

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
		if in := medianInterval(s); in.Low <= math.Ln2 && math.Ln2 <= in.High {
			hits++
		}
	}
	if got := float64(hits) / runs; got < confidence || got > 0.98 {
		t.Errorf("the interval has the true median in %.3f of all samples, want %.2f or a little more", got, confidence)
	}
}

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
