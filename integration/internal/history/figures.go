package history

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Figures counts what happened in a run.
type Figures struct {
	Span     time.Duration             // from the first record to the last
	Whats    map[What]int              // records by kind
	Calls    map[string]map[string]int // by call, then by outcome; NoReturn for calls without a return
	Faults   map[string]int            // by kind
	Losses   map[string]int            // by cause
	Grants   int
	Holds    int           // grants with at least one stamp
	Terms    int           // holds in which lead ran
	Shared   int           // holds that were shared
	Permits  int           // of those, holds of permits
	LongWait time.Duration // the longest call of acquire that was granted
	LongHold time.Duration // the longest hold
	Refused  int           // writes that the fenced register refused
}

// NoReturn is the outcome, in [Figures], of a call that was invoked and has not returned.
const NoReturn = "no return"

// Count computes the figures. Records may be in any order.
func Count(records []Record) Figures {
	s := newStory(records, Rules{}, &findings{})
	f := Figures{
		Span: time.Duration(s.end - s.start), Grants: len(s.grants),
		Whats: map[What]int{}, Calls: map[string]map[string]int{}, Faults: map[string]int{}, Losses: map[string]int{},
	}
	for _, r := range records {
		f.Whats[r.What]++
		switch {
		case r.What == Begin:
			f.Faults[r.Fault]++
		case r.What == Lost:
			f.Losses[r.Cause]++
		case r.What == Wrote && !r.Accepted:
			f.Refused++
		}
	}
	for _, c := range s.calls {
		if c.invoke == nil {
			continue
		}
		outcomes := f.Calls[c.invoke.Call]
		if outcomes == nil {
			outcomes = map[string]int{}
			f.Calls[c.invoke.Call] = outcomes
		}
		outcomes[cmp.Or(c.outcome(), NoReturn)]++
		if c.invoke.Call == Acquire && c.outcome() == OK {
			f.LongWait = max(f.LongWait, time.Duration(c.ret.At-c.invoke.At))
		}
	}
	for _, g := range s.grants {
		if !g.held {
			continue
		}
		f.Holds++
		f.LongHold = max(f.LongHold, time.Duration(g.last-g.first))
		for n, counts := range map[*int]bool{&f.Terms: g.led != nil, &f.Shared: g.mode.Shared, &f.Permits: g.mode.Limit > 0} {
			if counts {
				*n++
			}
		}
	}
	return f
}

// Write prints the figures, one line per kind.
func (f Figures) Write(w io.Writer) error {
	var out bytes.Buffer
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("records", "%s in %v", tally(f.Whats), f.Span.Round(time.Millisecond))
	for _, call := range slices.Sorted(maps.Keys(f.Calls)) {
		line(call, "%s", tally(f.Calls[call]))
	}
	line("faults", "%s", tally(f.Faults))
	line("grants", "%d: %d holds, %d of them terms, %d shared, %d permits", f.Grants, f.Holds, f.Terms, f.Shared, f.Permits)
	line("losses", "%s", tally(f.Losses))
	line("longest", "a wait of %v, a hold of %v", f.LongWait.Round(time.Millisecond), f.LongHold.Round(time.Millisecond))
	line("fence", "%d writes refused", f.Refused)
	_, err := out.WriteTo(w)
	return err
}

// tally is a total and its parts, the most frequent first.
func tally[K ~string](counts map[K]int) string {
	total := 0
	names := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		total += counts[name]
		parts[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	if total == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}
