package main

import (
	"slices"
	"time"
)

// parts is the number of parts of a period in which events are counted to measure
// their spread.
const parts = 10

// busiest returns, for each of a number of consecutive periods, the events in its
// busiest part relative to the average part: 1 is perfectly even, parts is all at
// once. Times count from the beginning of the first period; times after the last
// period and empty periods are ignored.
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

// worstOf compares the worst values of two samples, in groups measured together.
// The remainder counts as a group.
func worstOf(ours, other []float64, size int) []float64 {
	var out []float64
	for i := 0; i < len(ours); i += size {
		end := min(i+size, len(ours))
		out = append(out, slices.Max(ours[i:end])/slices.Max(other[i:end]))
	}
	return out
}
