package main

import (
	"math"
	"slices"
)

// confidence is the least confidence of an interval.
const confidence = 0.95

// interval is the median of a sample and an interval that contains the true median with the confidence, for any distribution: its
// ends are order statistics of the sample.
type interval struct{ median, low, high float64 }

// medianInterval needs a non-empty sample. Fewer than six values cannot reach the confidence: then the interval is their range.
func medianInterval(sample []float64) interval {
	s := slices.Sorted(slices.Values(sample))
	n := len(s)
	k := rank(n)
	return interval{(s[(n-1)/2] + s[n/2]) / 2, s[k], s[n-1-k]}
}

// rank returns the largest k for which the interval from the k-th smallest to the k-th largest of n values, counted from 0, reaches
// the confidence. The number of values below the true median is binomial with probability one half. The interval misses the median
// when at most k values lie on one side.
func rank(n int) int {
	k, tail := 0, 0.0
	for i := range n / 2 {
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
