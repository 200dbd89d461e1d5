package history

import (
	"fmt"
	"slices"
	"strings"
)

// checkLimit demands that no more hold a permit than there are, when g begins to hold one, beside those that may reach
// that. A strike is an excuse, for as long as it is between two that exclude each other.
func (s *story) checkLimit(g *grant, running []*grant, f *findings) {
	if g.mode.Limit == 0 {
		return
	}
	peers := []*grant{g}
	for _, other := range running {
		if other.mode == g.mode {
			peers = append(peers, other)
		}
	}
	if len(peers) <= g.mode.Limit {
		return
	}
	told := func(one *grant) int64 { // who came in its place had been granted by then
		latest := g.ret
		for _, other := range peers {
			if other != one {
				latest = max(latest, other.ret)
			}
		}
		return latest
	}
	moments := []int64{g.first} // and when an excuse has ended
	for _, one := range peers {
		for _, hit := range one.strikes {
			if end := s.believes(hit, told(one)); end >= g.first && end < min(g.last, one.last) {
				moments = append(moments, end+1)
			}
		}
	}
	for _, at := range moments {
		holders := slices.DeleteFunc(slices.Clone(peers), func(one *grant) bool {
			return one.last < at || s.excused(one, told(one), at, at)
		})
		if len(holders) > g.mode.Limit {
			f.add(s.crowd(RuleExclusion, at, "hold a permit", holders))
			return
		}
	}
}

// crowd is the violation of too many permits at a time.
func (s *story) crowd(rule string, at int64, what string, holders []*grant) Violation {
	names := make([]string, len(holders))
	for i, g := range holders {
		names[i] = g.String()
	}
	return Violation{
		Rule: rule, Key: holders[0].key, From: at, To: at,
		Text: fmt.Sprintf("%d %s at %s: %s", len(holders), what, s.at(at), strings.Join(names, "; ")),
	}
}

// checkFree demands that nothing stays behind: when all is quiet, a try is refused only because of calls that were made since then.
// So a process that tries for all permits of a key, one after the other, finds those that were lost.
func (s *story) checkFree(f *findings) {
	for _, c := range s.calls {
		if c.invoke == nil || c.invoke.Call != Try || c.outcome() != Refused || c.invoke.At <= s.quiet {
			continue
		}
		permits := 0
		if !slices.ContainsFunc(s.calls, func(other *call) bool {
			switch {
			case other == c || !s.inTheWay(other, c):
				return false
			case other.granted() && !other.invoke.Mode.excludes(c.invoke.Mode):
				permits++
				return c.invoke.Mode.Limit > 0 && permits >= c.invoke.Mode.Limit
			}
			return true
		}) {
			f.add(Violation{
				Rule: RuleFree, Key: c.invoke.Key, From: c.invoke.At, To: c.ret.At,
				Text: fmt.Sprintf("process %q was refused%v at %s, though all was quiet at %s, and since then %d have been granted that may still be held",
					c.invoke.Process, c.invoke.Mode, s.at(c.ret.At), s.at(s.quiet), permits),
			})
		}
	}
}

// inTheWay reports whether what came of another call may have been in the way of a refused try since all was quiet.
func (s *story) inTheWay(other, c *call) bool {
	if other.invoke == nil || !other.invoke.acquires() || other.invoke.Key != c.invoke.Key || other.invoke.At <= s.quiet || other.invoke.At > c.ret.At {
		return false
	}
	switch {
	case other.granted():
		g := s.grants[grantID{other.ret.Process, other.invoke.Key, other.ret.Token}]
		return g == nil || s.freed(g) >= c.invoke.At
	case other.ret != nil:
		return other.ret.At >= c.invoke.At
	}
	return true
}
