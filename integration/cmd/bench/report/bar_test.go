package report

import "testing"

// TestVerdict guards that a value is short only if its whole interval lies beyond the bar.
func TestVerdict(t *testing.T) {
	t.Parallel()
	const within = "not short: the bar is within the interval"
	for _, c := range []struct {
		bar  Bar
		in   Interval
		want string
	}{
		{AtLeast(1.1), Interval{1.3, 1.2, 1.4}, "reached"},
		{AtLeast(1.1), Interval{1.1, 1.1, 1.1}, "reached"},
		{AtLeast(1.1), Interval{1.05, 1.0, 1.15}, within},
		{AtLeast(1.1), Interval{1.0, 0.9, 1.09}, "SHORT"},
		{AtMost(1.15), Interval{1.1, 1.0, 1.15}, "reached"},
		{AtMost(1.15), Interval{1.2, 1.1, 1.3}, within},
		{AtMost(1.15), Interval{1.2, 1.16, 1.3}, "SHORT"},
		{Limit(4096, " B"), Interval{5000, 5000, 5000}, "SHORT"},
	} {
		if got := c.bar.verdict(c.in); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.in, c.bar, got, c.want)
		}
	}
}
