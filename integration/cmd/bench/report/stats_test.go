package report

import "testing"

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
