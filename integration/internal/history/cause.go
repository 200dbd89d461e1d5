package history

import (
	"fmt"
	"slices"
	"time"
)

// checkCauses demands that a lock which was not released ended for a reason that happened. A client that gives up a lock by
// mistake, for example because it takes its own write for a stranger's, reports a cause that never happened.
func (s *story) checkCauses(f *findings) {
	for _, key := range s.names() {
		for _, g := range s.keys[key] {
			end := g.lost
			if end == nil && g.released != nil && g.released.outcome() == Gone { // the release observed it
				end = g.released.ret
			}
			if end == nil || end != g.lost && end.Cause == "" {
				continue
			}
			if wrong := s.wrongCause(g, end); wrong != "" {
				f.add(Violation{
					Rule: RuleCause, Key: g.key, From: g.invoke, To: end.At,
					Text: fmt.Sprintf("the lock of %v, ended by %s with %q, %s", g, s.at(end.At), end.Cause, wrong),
				})
			}
		}
	}
}

// wrongCause returns why the cause of an end is wrong, or "".
func (s *story) wrongCause(g *grant, end *Record) string {
	struck := slices.ContainsFunc(g.strikes, func(hit strike) bool { return hit.from <= end.At && (hit.reclaim || end.Cause != "reclaimed") })
	switch end.Cause {
	case ByClose:
		if c := s.closes[g.process]; c == nil || c.invoke.At > end.At {
			return "but its client was not closed"
		}
	case "broken":
		if !struck {
			return "but no client broke it"
		}
	case "reclaimed":
		sameOwner := func(c *call) bool { return c.invoke.Process != g.process && c.invoke.Owner == g.owner }
		if !struck && !(s.rules.Namesakes && s.follows(g, end.At, sameOwner)) {
			return "but no client reclaimed it"
		}
	case "taken_over":
		switch {
		case struck:
		case !s.follows(g, end.At, func(*call) bool { return true }):
			return "but no client can have taken it over"
		default:
			return s.unprovoked(g, end)
		}
	case "session_expired", "lease_expired":
		return s.unprovoked(g, end)
	case "ttl_expired":
		if g.ttl == 0 || end.At+s.forward(g.process, g.invoke, end.At) < g.invoke+g.ttl {
			return fmt.Sprintf("but its TTL was %v, counted from when it was granted", time.Duration(g.ttl))
		}
	case "clock_jump":
	case "released":
		if g.led == nil { // checkTerms reports a term
			return "but it was not released"
		}
	default:
		return "which is not a known cause"
	}
	return ""
}

// unprovoked says that a lease ran out without a fault, on a machine that never stands still.
func (s *story) unprovoked(g *grant, end *Record) string {
	if !s.rules.Steady || s.endangered(g.invoke-2*int64(s.rules.Lease), end.At) {
		return ""
	}
	return fmt.Sprintf("but no fault that ends a lease had happened since two leases before %s, when it was asked for", s.at(g.invoke))
}

// follows reports whether one of the calls that count may have been granted the key of a grant, after it, by then.
func (s *story) follows(g *grant, at int64, counts func(*call) bool) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool {
		r := c.invoke
		switch {
		case r == nil || !r.acquires() || r.Key != g.key || r.At > at || !counts(c):
			return false
		case c.ret == nil:
			return true
		case c.outcome() == OK:
			return c.ret.Token > g.token
		}
		return c.ret.At >= g.invoke // its requests may be carried out later
	})
}

// forward is the largest amount by which a process may have set its wall clock forward within an interval. A jump under way
// at either end counts; one backwards does not, because the clock may have been read before it.
func (s *story) forward(process string, from, to int64) int64 {
	sum := int64(0)
	for _, c := range s.jumps[process] {
		if c.invoke.At <= to && (c.ret == nil || c.ret.At >= from) {
			sum += max(0, c.invoke.By)
		}
	}
	return sum
}
