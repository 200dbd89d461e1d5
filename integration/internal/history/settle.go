package history

import "fmt"

// checkSettle demands that each call returns, or its process ends: within Settle of the moment when the faults
// were over and the call was under way, and for all calls by the end of the history. A waiter that gets no grant
// must get an error. An observation may go on until the end.
func (s *story) checkSettle(f *findings) {
	for _, c := range s.calls {
		if c.invoke == nil {
			continue
		}
		r := c.invoke
		over, how := s.end, "had not returned at the end, at"
		if c.ret != nil {
			over, how = c.ret.At, "returned at"
		} else if gone, ok := s.gone[r.Process]; ok {
			over, how = gone, "ended with its process at"
		} else {
			f.add(s.unsettled(c, over, how, ""))
			continue
		}
		if s.rules.Settle == 0 || s.calm == never || r.Call == Observe {
			continue
		}
		if from := max(r.At, s.calm); over > from+int64(s.rules.Settle) {
			f.add(s.unsettled(c, over, how, fmt.Sprintf("; %s must be over %v after %s", r.Call, s.rules.Settle, s.at(from))))
		}
	}
}

func (s *story) unsettled(c *call, over int64, how, why string) Violation {
	r := c.invoke
	return Violation{
		Rule: RuleSettle, Key: r.Key, From: r.At, To: over,
		Text: fmt.Sprintf("process %q: %s, invoked at %s, %s %s%s", r.Process, r.Call, s.at(r.At), how, s.at(over), why),
	}
}
