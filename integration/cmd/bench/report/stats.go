package report

import (
	"math"
	"slices"
)

// confidence is the confidence of every interval in the table.
const confidence = 0.95

// Interval is the median of a sample and an interval that contains the true
// median with at least the given confidence, for any distribution: its ends are
// order statistics of the sample.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// enough is how many values an interval needs to reach the confidence.
const enough = 6

// MedianInterval needs a non-empty sample. Fewer than six values cannot reach
// the confidence: then the interval is their whole range.
func MedianInterval(sample []float64) Interval {
	s := slices.Sorted(slices.Values(sample))
	n := len(s)
	k := rank(n)
	return Interval{Median: median(s), Low: s[k], High: s[n-1-k]}
}

// median is that of a sorted sample.
func median(s []float64) float64 {
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// rank returns the largest k for which the interval from the k-th smallest to
// the k-th largest of n values, counted from 0, reaches the confidence. The
// number of values below the true median is binomial with probability one half,
// and the interval misses it when at most k of them lie on one side.
func rank(n int) int {
	k, tail := 0, 0.0
	for i := 0; i < n/2; i++ {
		tail += binomial(n, i)
		if 2*tail > 1-confidence {
			break
		}
		k = i
	}
	return k
}

// binomial is the probability of i successes in n trials of one half each.
func binomial(n, i int) float64 {
	all, _ := math.Lgamma(float64(n + 1))
	in, _ := math.Lgamma(float64(i + 1))
	out, _ := math.Lgamma(float64(n - i + 1))
	return math.Exp(all - in - out - float64(n)*math.Ln2)
}
