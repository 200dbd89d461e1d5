package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// historyFile holds the records of a run, one per line.
const historyFile = "history.jsonl"

// verdict is the result of a run.
type verdict struct {
	settings
	again      string
	figures    history.Figures
	violations []history.Violation // found in the history
	problems   []error             // found elsewhere
	passed     int                 // planned faults that were skipped
}

// turn is for how many halves of a lease a key may be free at most while a request waits for it, in a run with only endured faults.
const turn = 3

// While nothing is wrong, a key may be free for a lease by prompt. Such a time begins some leases after a fault, because delays between
// tries have grown; or a lease by relief after a fault that hit single requests or processes, because their orphans are given back
// before a lease is over.
const (
	prompt   = 2
	relief   = 4
	recovery = 4
)

// lasting are faults that leave a grant which ends with its lease.
var lasting = []string{string(nemesis.LateRequest), string(nemesis.ClientKilled)}

// singly are faults that cost no lease unless the client loses its connection for another reason meanwhile. With the longest interval of
// heartbeats, the rest of its lease can then be shorter than the time to leave a server that does not answer.
var singly = []string{string(nemesis.HalfOpen)}

// undisturbed reports whether a run has only endured faults.
func (r *run) undisturbed() bool {
	return r.Quiet || len(r.Kinds) > 0 && !slices.ContainsFunc(r.Kinds, func(kind nemesis.Kind) bool {
		return !slices.Contains(r.endured, string(kind))
	})
}

// judge checks the whole run.
func (r *run) judge() *verdict {
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
		if rules.Watched {
			rules.Prompt += r.lease // an intent that arrives after its call has given up keeps others from the key for as long
		}
	}
	if r.steady && r.undisturbed() {
		rules.Turn = turn * r.lease / 2
	}
	return &verdict{
		settings:   r.settings,
		again:      r.again,
		figures:    history.Count(records),
		violations: history.Check(records, rules),
		problems:   r.problems,
		passed:     r.passed,
	}
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
		fmt.Fprintf(&out, "           the same faults again: %s\n", v.again)
	}
	_, err := out.WriteTo(w)
	return err
}
