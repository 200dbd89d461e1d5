package main

import (
	"slices"
	"time"
)

// parts is into how many parts a period is cut to see whether what happens in it
// is spread.
const parts = 10

// busiest returns, for each of a number of periods that follow on each other, how
// many times its share of what happened in the period has happened in the busiest
// of the period's parts: 1 is perfectly even, parts is all at once. The times
// count from the beginning of the first period; those after the last do not
// count, and neither does a period in which nothing happened.
func busiest(at []time.Duration, period time.Duration, periods int) []float64 {
	counts := make([][parts]int, periods)
	for _, t := range at {
		if i := int(t / period); i < periods {
			counts[i][t%period*parts/period]++
		}
	}
	var out []float64
	for _, c := range counts {
		sum := 0
		for _, n := range c {
			sum += n
		}
		if sum > 0 {
			out = append(out, float64(slices.Max(c[:])*parts)/float64(sum))
		}
	}
	return out
}

// worstOf compares the worst of one sample to the worst of another, in groups of
// values that were measured together. The rest of a sample counts as a group.
func worstOf(ours, other []float64, size int) []float64 {
	var out []float64
	for i := 0; i < len(ours); i += size {
		end := min(i+size, len(ours))
		out = append(out, slices.Max(ours[i:end])/slices.Max(other[i:end]))
	}
	return out
}
