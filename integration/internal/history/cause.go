package history

import (
	"fmt"
	"slices"
	"time"
)

// causes are the reasons for which an unreleased lock may end.
var causes = []string{
	"ErrSessionExpired", "ErrLeaseExpired", "ErrBroken", "ErrReclaimed", "ErrTakenOver", "ErrClockJump", "ErrTTLExpired",
}

// checkCauses demands that a reported cause really happened: a lock was broken only if somebody broke it, reclaimed only if
// its owner reclaimed it, and its TTL ended only if that had passed, on the monotonic clock or on the wall clock, which may
// be set. A client that gives up a lock by mistake, for example because it takes its own write for a stranger's, reports a
// cause that never happened.
func (s *story) checkCauses(f *findings) {
	for _, key := range s.names() {
		for _, g := range s.keys[key] {
			if g.lost == nil {
				continue
			}
			if wrong := s.wrongCause(g); wrong != "" {
				f.add(Violation{
					Rule: RuleCause, Key: g.key, Processes: []string{g.process}, Tokens: []uint64{g.token}, From: g.invoke, To: g.lost.At,
					Text: fmt.Sprintf("the lock of process %q, token %d, ended by %s with %q, %s", g.process, g.token, s.at(g.lost.At), g.lost.Cause, wrong),
				})
			}
		}
	}
}

// wrongCause says what is wrong with the cause of a lost lock, or "".
func (s *story) wrongCause(g *grant) string {
	struck := func(reclaimed bool) bool {
		return slices.ContainsFunc(g.strikes, func(hit strike) bool {
			return hit.from <= g.lost.At && (hit.reclaim || !reclaimed)
		})
	}
	switch cause := g.lost.Cause; {
	case !slices.Contains(causes, cause):
		return "which is not a known cause"
	case cause == "ErrBroken" && !struck(false):
		return "and nobody had broken it"
	case cause == "ErrReclaimed" && !struck(true):
		return "and nobody had reclaimed it"
	case cause == "ErrTTLExpired" && g.ttl == 0:
		return "and had no TTL"
	case cause == "ErrTTLExpired" && g.lost.At+s.forward(g.process, g.invoke, g.lost.At) < g.invoke+g.ttl:
		return fmt.Sprintf("and its TTL was %v, counted from when it was granted", time.Duration(g.ttl))
	}
	return ""
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
			Rule: RuleFailed, Key: c.invoke.Key, Processes: []string{c.invoke.Process}, Tokens: []uint64{c.invoke.Token},
			From: c.invoke.At, To: c.ret.At,
			Text: fmt.Sprintf("process %q: %s, invoked at %s, failed at %s without a reason: %s",
				c.invoke.Process, c.invoke.Call, s.at(c.invoke.At), s.at(c.ret.At), c.ret.Note),
		})
	}
}
