package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// historyFile holds the records of a run, one per line.
const historyFile = "history.jsonl"

// mostPictures is how many violations are drawn at most.
const mostPictures = 3

// verdict is the result of a run.
type verdict struct {
	settings
	again      string
	figures    history.Figures
	violations []history.Violation // found in the history
	problems   []error             // found elsewhere
	diverged   []string            // how the servers differ, through no fault of the library
	passed     int                 // planned faults that were skipped
	pictures   []string
}

// turn is for how many halves of a lease a key may be free at most, while somebody waits for it, if nothing else is wrong than
// what costs nobody a lease: who has been killed may have had it until a lease later, and who waited has to find that out.
const turn = 3

// The same, in a time in which nothing is wrong, is a lease by prompt. That begins when nothing has been wrong for some leases, in
// which delays between tries have grown, and requests are still under way; or for a lease by relief, if only single requests or
// processes were hit: what these leave is to be given back before a lease is over.
const (
	prompt   = 2
	relief   = 4
	recovery = 4
)

// lasting are faults that leave what goes with a lease.
var lasting = []string{string(nemesis.LateRequest), string(nemesis.ClientKilled)}

// singly are faults that cost no lease unless the client loses its connection for another reason meanwhile. If it beats as seldom as it
// may, what is left of its lease then can be less than it takes to leave a server that does not answer.
var singly = []string{string(nemesis.HalfOpen)}

// undisturbed reports whether a run has no other faults than those.
func (r *run) undisturbed() bool {
	return r.Quiet || len(r.Kinds) > 0 && !slices.ContainsFunc(r.Kinds, func(kind nemesis.Kind) bool {
		return !slices.Contains(r.endured, string(kind))
	})
}

// judge checks the whole run.
func (r *run) judge() (*verdict, error) {
	records := r.journal.all()
	// A fault may hold back a process's request until after the process has
	// ended.
	rules := history.Rules{
		Lease: r.lease, Settle: r.settle(), Late: lateness * r.lease,
		Steady: r.steady, Endured: r.endured, Lasting: lasting, Singly: singly, Hushed: []string{string(nemesis.EventsLost)},
		Namesakes: engineOf(r.Engine).namesakes, Endless: engineOf(r.Engine).endless, Watched: engineOf(r.Engine).watched,
		Queued: engineOf(r.Engine).queued,
	}
	if r.steady {
		rules.Prompt, rules.Relief, rules.Recovery = r.lease/prompt, r.lease/relief, recovery*r.lease
	}
	if r.steady && r.undisturbed() {
		rules.Turn = turn * r.lease / 2
	}
	v := &verdict{
		settings:   r.settings,
		again:      r.again,
		figures:    history.Count(records),
		violations: history.Check(records, rules),
		problems:   r.problems,
		diverged:   r.diverged,
		passed:     r.passed,
	}
	for i, violation := range v.violations {
		if i == mostPictures {
			break
		}
		var picture bytes.Buffer
		if err := history.Picture(&picture, records, rules, violation); err != nil {
			return nil, err
		}
		name := filepath.Join(r.Dir, fmt.Sprintf("violation-%d.html", i+1))
		if err := os.WriteFile(name, picture.Bytes(), 0o644); err != nil {
			return nil, err
		}
		v.pictures = append(v.pictures, name)
	}
	return v, nil
}

// err is nil if nothing is wrong.
func (v *verdict) err() error {
	n := len(v.violations) + len(v.problems)
	if n == 0 {
		return nil
	}
	var first error
	if len(v.violations) > 0 {
		first = errors.New(v.violations[0].String())
	} else {
		first = v.problems[0]
	}
	return fmt.Errorf("%s, seed %d: %d findings, first: %w", v.Engine, v.Seed, n, first)
}

// write prints the figures and the findings.
func (v *verdict) write(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%s, seed %d, %v\n", v.Engine, v.Seed, v.Length)
	if err := v.figures.Write(&out); err != nil {
		return err
	}
	fmt.Fprintf(&out, "%-11s%d planned faults, for lack of a target or of time\n", "left out", v.passed)
	for _, line := range v.diverged {
		fmt.Fprintf(&out, "%-11s%s\n", "diverged", line)
	}
	for _, violation := range v.violations {
		fmt.Fprintf(&out, "VIOLATION  %v\n", violation)
	}
	for _, problem := range v.problems {
		fmt.Fprintf(&out, "PROBLEM    %v\n", problem)
	}
	if v.err() == nil {
		fmt.Fprintf(&out, "verdict    no violations, no other problems\n")
	} else {
		fmt.Fprintf(&out, "verdict    %d violations, %d other problems; the history is %s\n",
			len(v.violations), len(v.problems), filepath.Join(v.Dir, historyFile))
		for _, picture := range v.pictures {
			fmt.Fprintf(&out, "           %s\n", picture)
		}
		fmt.Fprintf(&out, "           the same faults again: %s\n", v.again)
	}
	_, err := out.WriteTo(w)
	return err
}
