package history

import (
	"fmt"
	"slices"
	"time"
)

// causes are the reasons for which an unreleased lock may end.
var causes = []string{
	"session_expired", "lease_expired", "broken", "reclaimed", "taken_over", "clock_jump", "ttl_expired",
}

// checkCauses demands that a reported cause really happened: a lock was broken only if somebody broke it, reclaimed only if
// another process of its owner reclaimed it or took over, and its TTL ended only if that had passed, on the monotonic clock or
// on the wall clock, which may be set. A client that gives up a lock by mistake, for example because it takes its own write for
// a stranger's, reports a cause that never happened.
func (s *story) checkCauses(f *findings) {
	for _, key := range s.names() {
		for _, g := range s.keys[key] {
			end := g.lost
			if end == nil && g.released != nil && g.released.outcome() == Gone { // it was learned only then
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

// wrongCause says what is wrong with the cause of a lock that was lost, as a record of its end has it, or "".
func (s *story) wrongCause(g *grant, end *Record) string {
	struck := func(reclaimed bool) bool {
		return slices.ContainsFunc(g.strikes, func(hit strike) bool {
			return hit.from <= end.At && (hit.reclaim || !reclaimed)
		})
	}
	switch cause := end.Cause; {
	case cause == "released" && g.led != nil: // checkTerms says so
	case cause == ByClose && (s.closes[g.process] == nil || s.closes[g.process].invoke.At > end.At):
		return "and nobody had closed it"
	case cause == ByClose:
		return ""
	case !slices.Contains(causes, cause):
		return "which is not a known cause"
	case cause == "taken_over" && struck(false) && (s.follows(g, end.At, anybody) || s.brokenToo(g, end.At)): // what has struck it was over before it looked
		return ""
	case s.rules.Steady && (cause == "session_expired" || cause == "lease_expired" || cause == "taken_over") && !s.endangered(g.invoke-2*int64(s.rules.Lease), end.At):
		return fmt.Sprintf("and nothing that ends a lease had been wrong since two leases before it was acquired, at %s", s.at(g.invoke))
	case cause == "taken_over" && !s.takenOver(g, end.At):
		return "and nobody can have taken it over"
	case cause == "broken" && !struck(false):
		return "and nobody had broken it"
	case cause == "reclaimed" && !s.rules.Namesakes && struck(false): // a break right after an ask looks like a reclaim
	case cause == "reclaimed" && !struck(true) && !(s.rules.Namesakes && s.succeeded(g, end.At)):
		return "and nobody had reclaimed it"
	case cause == "ttl_expired" && g.ttl == 0:
		return "and had no TTL"
	case cause == "ttl_expired" && end.At+s.forward(g.process, g.invoke, end.At) < g.invoke+g.ttl:
		return fmt.Sprintf("and its TTL was %v, counted from when it was granted", time.Duration(g.ttl))
	}
	return ""
}

// brokenToo reports whether, after a break of a grant that shares a key, another of those who share it may have been broken by then: an
// item of DynamoDB names the last.
func (s *story) brokenToo(g *grant, at int64) bool {
	if !g.mode.Shared {
		return false
	}
	return slices.ContainsFunc(s.keys[g.key], func(other *grant) bool {
		return other != g && other.mode.Shared && slices.ContainsFunc(other.strikes, func(hit strike) bool {
			return !hit.reclaim && hit.from <= at && hit.till >= g.strikes[0].from
		})
	})
}

// succeeded reports whether another process may have been granted the key under the same owner by then.
func (s *story) succeeded(g *grant, at int64) bool {
	return s.follows(g, at, func(c *call) bool { return c.invoke.Process != g.process && c.invoke.Owner == g.owner })
}

// takenOver reports whether another may have been granted the key by then, also in the same process: it may not have been able to give
// back what it has, and its lease was over.
func (s *story) takenOver(g *grant, at int64) bool { return s.follows(g, at, anybody) }

func anybody(*call) bool { return true }

// follows reports whether one of some calls may have been granted a key, after a grant, by then.
func (s *story) follows(g *grant, at int64, counts func(*call) bool) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool {
		r := c.invoke
		if r == nil || !r.acquires() || r.Key != g.key || r.At > at || !counts(c) {
			return false
		}
		switch {
		case c.ret == nil:
			return true
		case c.outcome() == OK:
			return c.ret.Token > g.token
		}
		return c.ret.At >= g.invoke // what it has sent may be carried out yet
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
