package history

import "fmt"

// checkRecords finds records that contradict each other: a badly recorded history proves nothing. Records about one grant
// were checked when the story was built.
func (s *story) checkRecords(f *findings) {
	for i := range s.records {
		r := &s.records[i]
		if gone, ok := s.gone[r.Process]; ok && r.At > gone && ofClient(r.What) {
			f.add(s.malformed(r, "the process was gone at %s", s.at(gone)))
		}
	}
	s.checkCalls(f)
	for _, w := range s.writes {
		if g := s.grants[w.grant()]; g == nil || w.At < g.invoke {
			f.add(s.malformed(w, "it wrote with token %d before it was granted, if ever", w.Token))
		}
	}
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
func ofClient(w What) bool {
	return w == Invoke || w == Return || w == Held || w == Lost || w == Told || w == Asked || w == Idle
}

func (s *story) checkCalls(f *findings) {
	for _, c := range s.calls {
		switch {
		case c.invoke == nil:
			f.add(s.malformed(c.ret, "operation %d has returned without having been invoked", c.ret.Op))
		case c.ret == nil:
		case c.ret.At < c.invoke.At:
			f.add(s.malformed(c.ret, "operation %d returned before it was invoked at %s", c.ret.Op, s.at(c.invoke.At)))
		case c.ret.Key != c.invoke.Key, c.ret.Call != c.invoke.Call:
			f.add(s.malformed(c.ret, "operation %d was invoked as %s of key %q, and returned as %s of key %q",
				c.ret.Op, c.invoke.Call, c.invoke.Key, c.ret.Call, c.ret.Key))
		case c.invoke.acquires() && c.ret.Outcome == OK && c.ret.Token == 0:
			f.add(s.malformed(c.ret, "operation %d was granted without a token", c.ret.Op))
		}
	}
}

// checkFailed demands that calls end in a documented way.
func (s *story) checkFailed(f *findings) {
	for _, c := range s.calls {
		if c.invoke == nil || c.outcome() != Failed {
			continue
		}
		f.add(Violation{
			Rule: RuleFailed, Key: c.invoke.Key, From: c.invoke.At, To: c.ret.At,
			Text: fmt.Sprintf("process %q: %s, invoked at %s, failed at %s without a reason: %s",
				c.invoke.Process, c.invoke.Call, s.at(c.invoke.At), s.at(c.ret.At), c.ret.Note),
		})
	}
}
