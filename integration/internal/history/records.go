package history

import (
	"maps"
	"slices"
)

// checkRecords finds records that contradict each other: a badly recorded history proves nothing. Records about one grant
// were checked when the story was built.
func (s *story) checkRecords(f *findings) {
	calls := []string{Acquire, Try, Verify, Release, Break, Jump}
	outcomes := []string{OK, Refused, Gone, Pending, GaveUp, Closed, Failed}
	faults := map[int]bool{}
	for i := range s.records {
		r := &s.records[i]
		switch r.What {
		case Invoke:
			if !slices.Contains(calls, r.Call) {
				f.add(s.malformed(r, "there is no call %q", r.Call))
			}
		case Return:
			if !slices.Contains(outcomes, r.Outcome) {
				f.add(s.malformed(r, "there is no outcome %q", r.Outcome))
			}
		case Begin:
			faults[r.N] = true
		case Held, Lost, Wrote, End, Started, Stopped, Resumed, Killed, Exited, Calm:
		default:
			f.add(s.malformed(r, "there is no such kind of record"))
		}
		if gone, ok := s.gone[r.Process]; ok && r.At > gone && ofClient(r.What) {
			f.add(s.malformed(r, "the process was gone at %s", s.at(gone)))
		}
	}
	for i := range s.records {
		if r := &s.records[i]; r.What == End && !faults[r.N] {
			f.add(s.malformed(r, "fault %d ends that never began", r.N))
		}
	}
	s.checkCalls(f)
	s.checkWriters(f)
	if s.rules.Settle > 0 && s.calm == never {
		f.add(Violation{Rule: RuleHistory, From: s.end, To: s.end, Text: "the faults never ended: there is no record of calm"})
	}
	for _, g := range s.grants {
		if g.held {
			return
		}
	}
	f.add(Violation{Rule: RuleHistory, From: s.start, To: s.end, Text: "there is no hold in it, so nothing was tested"})
}

// ofClient reports whether client processes write records of this kind.
func ofClient(w What) bool { return w == Invoke || w == Return || w == Held || w == Lost }

func (s *story) checkCalls(f *findings) {
	for _, c := range s.calls {
		switch {
		case c.invoke == nil:
			f.add(s.malformed(c.ret, "operation %d has returned without having been invoked", c.ret.Op))
		case c.ret == nil:
		case c.ret.At < c.invoke.At:
			f.add(s.malformed(c.ret, "operation %d returned before it was invoked at %s", c.ret.Op, s.at(c.invoke.At)))
		case c.ret.Key != "" && c.ret.Key != c.invoke.Key, c.ret.Call != "" && c.ret.Call != c.invoke.Call:
			f.add(s.malformed(c.ret, "operation %d was invoked as %s of key %q, and returned as %s of key %q",
				c.ret.Op, c.invoke.Call, c.invoke.Key, c.ret.Call, c.ret.Key))
		case c.ret.Outcome == OK && c.ret.Token == 0 && (c.invoke.Call == Acquire || c.invoke.Call == Try):
			f.add(s.malformed(c.ret, "operation %d was granted without a token", c.ret.Op))
		}
	}
}

// checkWriters demands that each writer to a register had been granted the token. A killed process may lack its last
// records, but its writes count.
func (s *story) checkWriters(f *findings) {
	missing := map[grantID]*Record{}
	for _, w := range s.writes {
		id := grantID{w.Process, w.Key, w.Token}
		switch g := s.grants[id]; {
		case g == nil && !s.killed[w.Process] && missing[id] == nil:
			missing[id] = w
		case g != nil && w.At < g.invoke:
			f.add(s.malformed(w, "token %d was written before it was granted", w.Token))
		}
	}
	for _, w := range slices.SortedFunc(maps.Values(missing), func(a, b *Record) int { return int(min(max(a.At-b.At, -1), 1)) }) {
		f.add(s.malformed(w, "it wrote with token %d, which it was not granted", w.Token))
	}
}
