package history

import (
	"fmt"
	"slices"
	"time"
)

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

// checkCloses demands that Close returns in time, and after lead; and that no setting of data outlasts its lock.
func (s *story) checkCloses(f *findings) {
	for process, c := range s.closes {
		till, how, over := s.through(c)
		if !over {
			continue
		}
		// A lead may take a lease, the last release another, and, on DynamoDB, the orphans of abandoned acquisitions two.
		most := 4*s.rules.Lease + closeGrace
		if c.invoke.TTL > 0 {
			most = min(most, time.Duration(c.invoke.TTL)+closeGrace)
		}
		if took := time.Duration(till - c.invoke.At); s.rules.Steady && !s.paused(process, c.invoke.At, till) && took > most {
			f.add(s.unsettled(c, till, how, fmt.Sprintf(" (%v), and must return within %v", took, most)))
		}
	}
	for _, key := range s.names() {
		for _, g := range s.keys[key] {
			s.checkSettings(g, f)
			c := s.closes[g.process]
			if g.led != nil && g.lost == nil && c != nil && c.outcome() == OK && (g.led.ret == nil || g.led.ret.At > c.ret.At) {
				f.add(s.outside(g, c.invoke.At, c.ret.At, "its client was closed by %s, and lead had not returned", s.at(c.ret.At)))
			}
		}
	}
}

// through is until when a call was under way: it returned, or its process ended.
func (s *story) through(c *call) (till int64, how string, over bool) {
	if c.ret != nil {
		return c.ret.At, "returned at", true
	}
	gone, over := s.gone[c.invoke.Process]
	return gone, "had not returned by", over
}

// paused reports whether a process was stopped between two moments.
func (s *story) paused(process string, from, to int64) bool {
	return slices.ContainsFunc(s.stopped[process], func(p period) bool { return p.from <= to && from <= p.till })
}

// checkSettings demands that no setting of data outlasts its lock.
func (s *story) checkSettings(g *grant, f *findings) {
	for _, c := range g.data {
		till, how, over := s.through(c)
		if !over || !s.rules.Steady || s.paused(g.process, c.invoke.At, till) {
			continue
		}
		if from := max(c.invoke.At, g.ended); g.ended != never && till > from+int64(s.rules.Lease)/4 {
			f.add(s.unsettled(c, till, how, "; its lock had ended at "+s.at(g.ended)))
		}
	}
}

// closeGrace is the time that Close may take beyond its leases or beyond its ctx.
const closeGrace = 2 * time.Second

// addClose notes that the locks of a client have ended for their holder when its Close returns.
func (s *story) addClose(c *call) {
	s.closes[c.invoke.Process] = c
	if c.ret == nil {
		return
	}
	for _, g := range s.grants {
		if g.process == c.invoke.Process && g.ret <= c.ret.At {
			g.end(c.ret.At, "its client had been closed")
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
