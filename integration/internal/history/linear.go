package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// As a state machine, a lock is held with a set of tokens, and remembers all that it has been held with. Its steps:
//
//	grant(t)   it is held with none that excludes t, with fewer than the limit of t, and t is higher than any token before
//	           that excludes it: it is held with t, too
//	end(t)     it is held with t: it is not any more
//	verify(t)  it is held with t, and stays so
//
// The history of a key is linearizable if each step can be given a moment within its interval so that the machine accepts the
// steps in that order. Tokens leave little choice: grants that exclude each other come in the order of their tokens, each with
// its verifications in any order and then its end before the next. So each step may as well take the earliest moment that its
// interval and the steps before it allow. If that is too late for one, there is no order. Nor is there one if more
// grants than the limit were certainly made, and certainly not over, at one moment.

// checkLinearizable looks, for each key, for such an order. It skips keys that violate a rule about grants: they have no order,
// and the other rule describes the violation better.
func (s *story) checkLinearizable(f *findings) {
	for _, key := range s.names() {
		if f.dirty[key] {
			continue
		}
		if v := s.unordered(s.keys[key]); v != nil {
			f.add(*v)
		}
	}
}

// unordered says which step of a key comes too late for any order, or nil. The grants are in the order of their tokens.
func (s *story) unordered(grants []*grant) *Violation {
	type end struct {
		at int64 // the earliest moment at which all of its mode have ended so far
		of *grant
	}
	ends := map[Mode]end{}
	var permits []permit
	for _, g := range grants {
		free := end{at: math.MinInt64}
		for mode, e := range ends {
			if mode.excludes(g.mode) && e.at > free.at {
				free = e
			}
		}
		if free.at > g.ret {
			return s.tooLate(free.of, free.at, g.ret, fmt.Sprintf("and %v, was granted it by %s", g, s.at(g.ret)))
		}
		over, last, why := s.endOf(g)
		for _, c := range g.verified {
			over = max(over, c.invoke.At)
		}
		if g.mode.Limit > 0 {
			permits = append(permits, permit{g, max(free.at, g.invoke), min(g.ret, last), over})
		}
		if over = max(over, free.at); over > last {
			return s.tooLate(g, over, last, fmt.Sprintf("but it was over by %s: %s", s.at(last), why))
		}
		if over >= ends[g.mode].at || ends[g.mode].of == nil {
			ends[g.mode] = end{over, g}
		}
	}
	return s.tooMany(permits)
}

// A permit was granted at some moment from from to by, and was certainly held until then. If that is not after by, it may
// have been held for no more than a moment.
type permit struct {
	*grant
	from, by, until int64
}

// tooMany is the violation of more permits at a time than their limit, or nil.
func (s *story) tooMany(permits []permit) *Violation {
	slices.SortFunc(permits, func(a, b permit) int { return cmp.Compare(a.by, b.by) })
	longest := int64(0)
	for _, p := range permits {
		longest = max(longest, p.until-p.by)
	}
	for _, p := range permits {
		from, _ := slices.BinarySearchFunc(permits, p.from-longest, func(other permit, at int64) int { return cmp.Compare(other.by, at) })
		var beside []permit // those that were certainly held at some of its moments
		moments := []int64{p.by, p.from}
		for _, other := range permits[from:] {
			if other.by > p.by {
				break
			}
			if other.grant != p.grant && other.mode == p.mode && other.until > max(p.from, other.by) {
				beside = append(beside, other)
				moments = append(moments, other.until) // when there is room again
			}
		}
		if p.until >= p.by {
			moments = moments[:1] // the best is the last
		}
		brief := p.until <= p.by
		if !slices.ContainsFunc(moments, func(at int64) bool {
			return p.from <= at && at <= p.by && len(heldAt(beside, at, brief)) < p.mode.Limit
		}) {
			v := s.crowd(RuleLinearizable, p.by, "have been granted a permit and not given it back, by any order of the calls,",
				append(heldAt(beside, p.by, brief), p.grant))
			return &v
		}
	}
	return nil
}

// heldAt returns the permits that were certainly held after a moment; or before, of those granted in it.
func heldAt(permits []permit, at int64, before bool) []*grant {
	var held []*grant
	for _, p := range permits {
		if (p.by < at || p.by == at && !before) && at < p.until {
			held = append(held, p.grant)
		}
	}
	return held
}

// tooLate is the violation of a grant that cannot have ended before free, when something shows that it was over by then.
func (s *story) tooLate(g *grant, free, over int64, but string) *Violation {
	how := "held it until at least " + s.at(free)
	for _, c := range g.verified {
		if c.invoke.At == free {
			how = fmt.Sprintf("verified between %s and %s that token %d is valid", s.at(free), s.at(c.ret.At), g.token)
		}
	}
	return &Violation{
		Rule: RuleLinearizable, Key: g.key, From: over, To: free,
		Text: fmt.Sprintf("no order of the calls explains that %v, %s, %s", g, how, but),
	}
}

// endOf is when a grant has ended in the engine: not before first, not after last.
//
// A holder believes in its lock for no longer than the engine does, so the end is not before the last stamp; nor before a
// release that found the lock live. A strike is the exception: it ends the grant without asking the holder, at any time from
// its invoke on; one that was confirmed has ended it. Everything else (a killed process, a session or TTL that ended, a release
// in the background) ends it at some time, perhaps long after the history; rule ended is about what follows a release.
func (s *story) endOf(g *grant) (first, last int64, why string) {
	first, last, why = g.invoke, never, "nobody knows when"
	if g.held {
		first = g.last
	}
	if g.released != nil && (g.released.outcome() == OK || g.released.outcome() == Pending) {
		at := g.released.invoke.At
		if c := s.closes[g.process]; c != nil { // which had given it back, perhaps
			at = min(at, c.invoke.At)
		}
		first = max(first, at)
	}
	for _, hit := range g.strikes {
		first = min(first, max(hit.from, g.invoke))
		if hit.sure && hit.till < last {
			last, why = hit.till, "it was "+hit.what
		}
	}
	return first, last, why
}
