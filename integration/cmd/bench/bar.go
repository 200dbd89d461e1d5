package main

import "fmt"

// bar is what a measured value is held to.
type bar struct {
	value float64
	least bool // the value is to be at least this, else at most
	unit  string
}

func atLeast(v float64) bar            { return bar{value: v, least: true, unit: "x"} }
func atMost(v float64) bar             { return bar{value: v, unit: "x"} }
func limit(v float64, unit string) bar { return bar{value: v, unit: unit} }
func (b bar) format(v float64) string  { return number(v) + b.unit }
func (b bar) reached(v float64) bool   { return v == b.value || (v > b.value) == b.least }
func (b bar) interval(in Interval) string {
	return fmt.Sprintf("%s [%s, %s]", b.format(in.Median), number(in.Low), number(in.High))
}

func (b bar) String() string {
	if b.least {
		return ">= " + b.format(b.value)
	}
	return "<= " + b.format(b.value)
}

// verdict is short only if the whole interval is on the wrong side.
func (b bar) verdict(in Interval) string {
	low, high := b.reached(in.Low), b.reached(in.High)
	switch {
	case low && high:
		return "reached"
	case low || high:
		return "not short: the bar is within the interval"
	}
	return "SHORT"
}

// number keeps three digits or so.
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
