package history

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Figures counts what happened in a run.
type Figures struct {
	Records   int
	Span      time.Duration // from the first record to the last
	Processes int           // that were started
	Paused    int           // how often one of them was stopped
	Killed    int

	Calls    map[string]map[string]int // by call, then by outcome; NoReturn for calls without a return
	Faults   map[string]int            // by kind
	Grants   int
	Holds    int            // grants with at least one stamp
	Terms    int            // holds in which lead ran
	Shared   int            // holds that were shared
	Permits  int            // of those, holds of permits
	Told     int            // how often an observer was told a state
	Stamps   int            // how often a process looked and held
	Losses   map[string]int // by cause
	LongWait time.Duration  // the longest call of acquire that was granted
	LongHold time.Duration  // the longest hold

	Accepted int // writes of the fenced register
	Refused  int // the same, with a token that was too low
	Unfenced int // writes of the other register
	WentBack int // of those, writes after a later grant's: a fence would have refused them
}

// NoReturn is the outcome, in [Figures], of a call that was invoked and has not returned.
const NoReturn = "no return"

// Count computes the figures. Records may be in any order.
func Count(records []Record) Figures {
	s := newStory(records, Rules{}, &findings{})
	f := Figures{
		Records: len(records),
		Span:    time.Duration(s.end - s.start),
		Calls:   map[string]map[string]int{},
		Faults:  map[string]int{},
		Losses:  map[string]int{},
		Grants:  len(s.grants),
	}
	for i := range records {
		switch r := &records[i]; r.What {
		case Started:
			f.Processes++
		case Stopped:
			f.Paused++
		case Killed:
			f.Killed++
		case Begin:
			f.Faults[r.Fault]++
		case Held:
			f.Stamps++
		case Told:
			f.Told++
		case Lost:
			f.Losses[r.Cause]++
		}
	}
	for _, c := range s.calls {
		f.call(c)
	}
	for _, g := range s.grants {
		if g.held {
			f.Holds++
			if g.led != nil {
				f.Terms++
			}
			if g.mode.Shared {
				f.Shared++
			}
			if g.mode.Limit > 0 {
				f.Permits++
			}
			f.LongHold = max(f.LongHold, time.Duration(g.last-g.first))
		}
	}
	unfenced := map[string]uint64{}
	for _, w := range s.writes {
		switch {
		case w.Fenced && w.Accepted:
			f.Accepted++
		case w.Fenced:
			f.Refused++
		default:
			f.Unfenced++
			if w.Token < unfenced[w.Key] {
				f.WentBack++
			}
			unfenced[w.Key] = w.Token
		}
	}
	return f
}

func (f *Figures) call(c *call) {
	if c.invoke == nil {
		return
	}
	outcomes := f.Calls[c.invoke.Call]
	if outcomes == nil {
		outcomes = map[string]int{}
		f.Calls[c.invoke.Call] = outcomes
	}
	if c.ret == nil {
		outcomes[NoReturn]++
		return
	}
	outcomes[c.ret.Outcome]++
	if c.invoke.Call == Acquire && c.ret.Outcome == OK {
		f.LongWait = max(f.LongWait, time.Duration(c.ret.At-c.invoke.At))
	}
}

// Write prints the figures, one line per kind.
func (f Figures) Write(w io.Writer) error {
	var out bytes.Buffer
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("records", "%d in %v", f.Records, f.Span.Round(time.Millisecond))
	line("processes", "%d started, %d killed; one was paused %d times", f.Processes, f.Killed, f.Paused)
	for _, call := range []string{Acquire, Try, Verify, Release, Break, Lead, Resign, Observe, Jump} {
		if outcomes := f.Calls[call]; outcomes != nil {
			line(call, "%s", tally(outcomes))
		}
	}
	line("faults", "%s", tally(f.Faults))
	line("grants", "%d", f.Grants)
	line("holds", "%d, with %d stamps; the longest was %v", f.Holds, f.Stamps, f.LongHold.Round(time.Millisecond))
	line("terms", "%d of the holds", f.Terms)
	line("shared", "%d of the holds, %d of them permits", f.Shared, f.Permits)
	line("told", "%d states, to observers", f.Told)
	line("losses", "%s", tally(f.Losses))
	line("wait", "%v at most until a grant", f.LongWait.Round(time.Millisecond))
	line("fenced", "%d writes accepted, %d refused", f.Accepted, f.Refused)
	line("unfenced", "%d writes, %d of them went back", f.Unfenced, f.WentBack)
	_, err := out.WriteTo(w)
	return err
}

// tally is a total and its parts, the most frequent first.
func tally(counts map[string]int) string {
	total := 0
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if n := counts[b] - counts[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
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
