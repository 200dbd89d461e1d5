package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// result is one line of the table.
type result struct {
	Row      string    `json:"row"`
	Measured string    `json:"measured"` // what each side took
	Ratio    string    `json:"-"`
	Bar      string    `json:"bar"`
	Verdict  string    `json:"verdict"`
	Interval Interval  `json:"interval"`
	Sample   []float64 `json:"sample"`           // what the interval is of
	Ops      int       `json:"ops,omitempty"`    // in a block
	Blocks   []pair    `json:"blocks,omitempty"` // their times
}

func judge(row, measured string, b bar, sample []float64) result {
	in := medianInterval(sample)
	return result{
		Row:      row,
		Measured: measured,
		Ratio:    b.interval(in),
		Bar:      b.String(),
		Verdict:  b.verdict(in),
		Interval: in,
		Sample:   sample,
	}
}

// compared is the result of blocks that alternated.
func compared(row, unit string, b bar, ours, other side, pairs []pair, ops int) result {
	a, z := perOp(pairs, ops)
	sample := longer(pairs)
	if b.least {
		sample = slower(pairs)
	}
	r := judge(row, fmt.Sprintf("%s %v, %s %v per %s", ours.name, a, other.name, z, unit), b, sample)
	r.Ops, r.Blocks = ops, pairs
	return r
}

const layout = "%-58s | %-62s | %-22s | %-12s | %s\n"

func header(w io.Writer) {
	fmt.Fprintf(w, layout, "row", "measured (medians)", "ratio [95%]", "bar", "verdict")
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, layout, r.Row, r.Measured, r.Ratio, r.Bar, r.Verdict)
}

// save writes everything that was measured.
func save(path string, began time.Time, results []result) error {
	b, err := json.MarshalIndent(struct {
		Began   time.Time `json:"began"`
		Took    string    `json:"took"`
		Load    string    `json:"load_after"`
		Results []result  `json:"results"`
	}{began, time.Since(began).Round(time.Second).String(), load(), results}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// load is the machine's load average, where there is one.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	var one, five, fifteen string
	_, _ = fmt.Sscan(string(b), &one, &five, &fifteen)
	return one + " " + five + " " + fifteen
}
