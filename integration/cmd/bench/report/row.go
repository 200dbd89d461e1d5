package report

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Row is one thing that was measured.
type Row struct {
	Name     string    `json:"name"`
	Measured string    `json:"measured"` // what the values are, or what each side took
	Over     string    `json:"over"`     // on what they rest
	Unit     string    `json:"unit"`     // of the values; "x" for how many times
	Values   int       `json:"values"`   // how many
	Interval Interval  `json:"interval"` // of their median; of fewer than six values it is their range
	Least    float64   `json:"least"`
	Greatest float64   `json:"greatest"`
	Bar      string    `json:"bar"`
	Verdict  string    `json:"verdict"`
	Sample   []float64 `json:"sample,omitempty"`  // the values; those of a contest derive from its blocks
	Contest  *Contest  `json:"contest,omitempty"` // the source of the values, for a contest
}

// Contest is the same work done by two sides in alternating blocks.
type Contest struct {
	Where    string `json:"where"`              // the engine, and how far away it was
	What     string `json:"what"`               // the work
	Waiters  int    `json:"waiters,omitempty"`  // for hand-offs
	Election bool   `json:"election,omitempty"` // it is in the tables, and in no picture
	Sharing  bool   `json:"sharing,omitempty"`  // likewise
	Op       string `json:"op"`                 // what is counted
	Ops      int    `json:"ops"`                // in a block
	Ours     Side   `json:"ours"`
	Other    Side   `json:"other"`
}

// kind says where a contest is shown: each has a part of the table, and the first two have a picture.
type kind int

const (
	alone kind = iota
	waited
	shared
	elected
)

func (c *Contest) kind() kind {
	switch {
	case c.Election:
		return elected
	case c.Sharing:
		return shared
	case c.Waiters > 0:
		return waited
	}
	return alone
}

// Side is one of the two sides of a contest.
type Side struct {
	Name   string          `json:"name"`
	Blocks []time.Duration `json:"blocks_ns"`
}

// Judge makes a row of a sample. over describes the sample.
func Judge(name, measured, over string, b Bar, sample []float64) Row {
	in := MedianInterval(sample)
	return Row{
		Name:     name,
		Measured: measured,
		Over:     over,
		Unit:     b.unit,
		Values:   len(sample),
		Interval: in,
		Least:    slices.Min(sample),
		Greatest: slices.Max(sample),
		Bar:      b.String(),
		Verdict:  b.verdict(in),
		Sample:   sample,
	}
}

// Compare makes a row of a contest. Its values are the ratios of consecutive
// blocks: the other side's time to ours if the bar is for our speed, else the
// inverse.
func Compare(c Contest, b Bar) Row {
	name := fmt.Sprintf("%s: %s, against %s", c.Where, c.What, c.Other.Name)
	measured := fmt.Sprintf("%s %s, %s %s per %s", c.Ours.Name, brief(c.PerOp(c.Ours).Median), c.Other.Name, brief(c.PerOp(c.Other).Median), c.Op)
	over := fmt.Sprintf("%d pairs of blocks of %d", len(c.Ours.Blocks), c.Ops)
	r := Judge(name, measured, over, b, c.ratios(b.least))
	r.Sample, r.Contest = nil, &c
	return r
}

func (c Contest) ratios(faster bool) []float64 {
	out := make([]float64, len(c.Ours.Blocks))
	for i, ours := range c.Ours.Blocks {
		out[i] = float64(ours) / float64(c.Other.Blocks[i])
		if faster {
			out[i] = 1 / out[i]
		}
	}
	return out
}

// PerOp is the time that one operation of a side takes, in nanoseconds.
func (c Contest) PerOp(s Side) Interval {
	sample := make([]float64, len(s.Blocks))
	for i, block := range s.Blocks {
		sample[i] = float64(block) / float64(c.Ops)
	}
	return MedianInterval(sample)
}

// Print prints the row on three lines.
func (r Row) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n    %s%s of %s; bar %s: %s\n    %s\n", r.Name, r.median(), r.spread(), r.Over, r.Bar, r.Verdict, r.Measured)
}

// median is the median with its interval, if there are values enough for one.
func (r Row) median() string {
	if r.Values < enough {
		return number(r.Interval.Median) + r.Unit
	}
	return fmt.Sprintf("%s%s [%s, %s]", number(r.Interval.Median), r.Unit, number(r.Interval.Low), number(r.Interval.High))
}

// spread is the range of the values, if there are several.
func (r Row) spread() string {
	if r.Values == 1 {
		return ""
	}
	return fmt.Sprintf(" (%s to %s)", number(r.Least), number(r.Greatest))
}

// brief is a time with three digits.
func brief(ns float64) string {
	switch {
	case ns < 1e6:
		return number(ns/1e3) + " µs"
	case ns < 1e9:
		return number(ns/1e6) + " ms"
	}
	return number(ns/1e9) + " s"
}
