package main

import "testing"

// TestMedianInterval compares the ranks with the tables for the sign test at 0.05, two-sided.
func TestMedianInterval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    int
		want interval
	}{
		{1, interval{1, 1, 1}},
		{2, interval{1.5, 1, 2}},
		{5, interval{3, 1, 5}},
		{6, interval{3.5, 1, 6}},
		{9, interval{5, 2, 8}},
		{30, interval{15.5, 10, 21}},
		{40, interval{20.5, 14, 27}},
	} {
		var descending []float64
		for i := range c.n {
			descending = append(descending, float64(c.n-i))
		}
		if got := medianInterval(descending); got != c.want {
			t.Errorf("medianInterval(%d values) = %v, want %v", c.n, got, c.want)
		}
	}
}
