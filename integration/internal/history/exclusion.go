package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// heldUntil is the last sign that the holder believed in its lock. It is before the return of the grant if there is no sign.
func (s *story) heldUntil(g *grant) int64 {
	until := g.invoke
	if g.held {
		until = g.last
	}
	for _, c := range g.verified {
		until = max(until, c.invoke.At)
	}
	if r := g.released; r != nil && (r.outcome() == OK || r.outcome() == Pending) {
		at := r.invoke.At
		if c := s.closes[g.process]; c != nil {
			at = min(at, c.invoke.At) // Close may have released it
		}
		if at <= g.ended {
			until = max(until, at)
		}
	}
	return until
}

// checkExclusion demands that no hold of a key goes on when a grant with a higher token that excludes it has returned, unless a strike
// excuses the holder, and that at most limit permits overlap.
func (s *story) checkExclusion(f *findings) {
	for _, key := range s.names() {
		grants := slices.SortedFunc(slices.Values(s.keys[key]), func(a, b *grant) int { return cmp.Compare(a.ret, b.ret) })
		var running []*grant      // holds that last until the return of the present grant
		tops := map[Mode]*grant{} // the highest token of each mode that has returned
		for _, g := range grants {
			running = slices.DeleteFunc(running, func(other *grant) bool { return s.heldUntil(other) < g.ret })
			for _, other := range running {
				s.checkPair(g.token < other.token, g, other, f)
			}
			for _, top := range tops {
				if top.token > g.token && top.ret >= g.invoke && !slices.Contains(running, top) { // or checkTokens reports it
					s.checkPair(true, g, top, f)
				}
			}
			if top := tops[g.mode]; top == nil || top.token < g.token {
				tops[g.mode] = g
			}
			if s.heldUntil(g) >= g.ret {
				running = append(running, g)
				s.checkLimit(g, running, f)
			}
		}
	}
}

// checkPair demands that g and another grant that returned before it do not overlap if they exclude each other.
func (s *story) checkPair(isOlder bool, g, other *grant, f *findings) {
	older, newer := other, g
	if isOlder {
		older, newer = g, other
	}
	until := s.heldUntil(older)
	if !g.mode.excludes(other.mode) || until < g.ret || s.excused(older, newer.ret, g.ret, until) {
		return
	}
	f.add(Violation{
		Rule: RuleExclusion, Key: g.key, From: g.ret, To: until,
		Text: fmt.Sprintf("two holders from %s to %s: %v, and %v, which was granted it by %s%s",
			s.at(g.ret), s.at(until), older, newer, s.at(newer.ret), s.noExcuse(older, newer.ret)),
	})
}

// checkLimit demands that the holds that overlap the return of g are at most as many as its limit.
func (s *story) checkLimit(g *grant, running []*grant, f *findings) {
	var names []string
	for _, one := range running {
		if one.mode == g.mode && !s.excused(one, g.ret, g.ret, max(g.ret, min(s.heldUntil(g), s.heldUntil(one)))) {
			names = append(names, one.String())
		}
	}
	if g.mode.Limit > 0 && len(names) > g.mode.Limit {
		f.add(Violation{
			Rule: RuleExclusion, Key: g.key, From: g.ret, To: g.ret,
			Text: fmt.Sprintf("%d hold a permit at %s: %s", len(names), s.at(g.ret), strings.Join(names, "; ")),
		})
	}
}

// excused reports whether a strike excuses the holder of a grant from one time to another. told is a time by which the successor had
// been granted.
func (s *story) excused(g *grant, told, from, to int64) bool {
	return slices.ContainsFunc(g.strikes, func(hit strike) bool { return !hit.gentle && hit.from <= from && to <= s.believes(hit, told) })
}

// believes is the latest time at which the holder of a struck grant may still believe in it.
func (s *story) believes(hit strike, told int64) int64 {
	e := min(hit.till, told)
	if e == never || s.rules.Endless {
		return never
	}
	return max(e, hit.from) + int64(s.rules.Lease)
}

// noExcuse says why no strike excuses a grant.
func (s *story) noExcuse(g *grant, told int64) string {
	if len(g.strikes) == 0 {
		return "; no client had broken or reclaimed it"
	}
	hit := g.strikes[0]
	if hit.gentle {
		return fmt.Sprintf("; token %d was %s, which ends no lock before its holder knows", g.token, hit.what)
	}
	return fmt.Sprintf("; token %d was %s, which excuses from %s to %s only", g.token, hit.what, s.at(hit.from), s.at(s.believes(hit, told)))
}

// checkVerified demands that no verification succeeds that was invoked after the lock had certainly ended: after the return of a
// break or reclaim, or of a grant with a higher token that excludes it.
func (s *story) checkVerified(f *findings) {
	for _, key := range s.names() {
		next := map[Mode]*grant{} // of the higher tokens, the first that returned
		for _, g := range slices.Backward(s.keys[key]) {
			over, why := int64(never), ""
			for _, hit := range g.strikes {
				if hit.sure && hit.till < over {
					over, why = hit.till, "it was "+hit.what
				}
			}
			for mode, other := range next {
				if mode.excludes(g.mode) && other.ret < over {
					over, why = other.ret, fmt.Sprintf("%v, had been granted it", other)
				}
			}
			for _, c := range g.verified {
				if c.invoke.At > over {
					f.add(Violation{
						Rule: RuleVerified, Key: key, From: over, To: c.invoke.At,
						Text: fmt.Sprintf("%v, verified between %s and %s that it is valid, but by %s %s",
							g, s.at(c.invoke.At), s.at(c.ret.At), s.at(over), why),
					})
					break
				}
			}
			if first := next[g.mode]; first == nil || g.ret < first.ret {
				next[g.mode] = g
			}
		}
	}
}

// checkRefused demands that a writer whose write the fenced register refused no longer held the key. The refusal itself is no violation: a
// holder that was stopped before its write, or whose grant was broken, may write too late.
func (s *story) checkRefused(f *findings) {
	highest := map[string]*Record{} // by key
	for _, w := range s.writes {
		g, top := s.grants[w.grant()], highest[w.Key]
		switch {
		case w.Accepted && (g == nil || !g.mode.Shared):
			highest[w.Key] = w
		case !w.Accepted && top != nil && g != nil && g.held && g.last > w.At && !s.excused(g, top.At, w.At, g.last):
			f.add(Violation{
				Rule: RuleExclusion, Key: g.key, From: w.At, To: g.last,
				Text: fmt.Sprintf("two holders: the register refused a write of %v, at %s, because of %v, and the writer held the key until %s%s",
					g, s.at(w.At), top.grant(), s.at(g.last), s.noExcuse(g, top.At)),
			})
		}
	}
}

// checkEnded demands that a lock which has ended for its holder stays ended. A holder has observed the end when Err was not
// nil, when Release returned, and when Verify said so.
func (s *story) checkEnded(f *findings) {
	for _, g := range s.grants {
		at, how := g.last, "Err was nil"
		for _, c := range g.verified {
			if c.invoke.At > at {
				at, how = c.invoke.At, "Verify confirmed it"
			}
		}
		if at > g.ended {
			f.add(Violation{
				Rule: RuleEnded, Key: g.key, From: g.ended, To: at,
				Text: fmt.Sprintf("the lock of %v, had ended at %s (%s), and was live again at %s: %s", g, s.at(g.ended), g.endedHow, s.at(at), how),
			})
		}
	}
}
