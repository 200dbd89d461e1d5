package report

import "fmt"

// Bar is the bound for a measured value.
type Bar struct {
	value float64
	least bool // the value must be at least this, else at most
	unit  string
}

// AtLeast is a bar for how many times as fast holdfast is.
func AtLeast(v float64) Bar { return Bar{value: v, least: true, unit: "x"} }

// AtMost is a bar for how many times as much something costs.
func AtMost(v float64) Bar { return Bar{value: v, unit: "x"} }

// Limit is the most that a value of a unit may be. The unit is "" or begins with
// a space.
func Limit(v float64, unit string) Bar { return Bar{value: v, unit: unit} }

func (b Bar) reached(v float64) bool { return v == b.value || (v > b.value) == b.least }

// atLeast begins the text of a lower bound.
const atLeast = ">="

// String is the bar as a condition.
func (b Bar) String() string {
	if b.least {
		return atLeast + " " + number(b.value) + b.unit
	}
	return "<= " + number(b.value) + b.unit
}

// verdict says "short" only if the whole interval is on the wrong side.
func (b Bar) verdict(in Interval) string {
	low, high := b.reached(in.Low), b.reached(in.High)
	switch {
	case low && high:
		return "reached"
	case low || high:
		return "not short: the bar is within the interval"
	}
	return "SHORT"
}

// number keeps about three digits.
func number(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
