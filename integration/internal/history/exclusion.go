package history

import (
	"fmt"
	"slices"
)

// checkExclusion demands that no two holds of a key overlap that exclude each other, unless they are excused, and that
// there are no more holders of permits than permits.
func (s *story) checkExclusion(f *findings) {
	for _, key := range s.names() {
		var running []*grant // holds that have begun, and that may reach the next one
		for _, g := range holdsOf(s.keys[key]) {
			running = slices.DeleteFunc(running, func(other *grant) bool { return other.last < g.first })
			for _, other := range running {
				if !other.mode.excludes(g.mode) {
					continue
				}
				older, newer := other, g
				if older.token > newer.token {
					older, newer = newer, older
				}
				from, to := g.first, min(g.last, other.last)
				if !s.excused(older, newer.ret, from, to) {
					f.add(s.overlap(older, newer, from, to))
				}
			}
			s.checkLimit(g, running, f)
			running = append(running, g)
		}
	}
}

// excused reports whether the holder of a struck grant may have believed in it between two times. told is a time by which its
// successor had been granted.
//
// A strike takes effect in the engine at some moment e, not before it was invoked. Nothing renews the grant after e, so its
// holder believes in it until e + Lease at the latest. And e is not after the return of a successful strike, nor after the
// successor's grant, which the strike made possible.
func (s *story) excused(g *grant, told, from, to int64) bool {
	for _, hit := range g.strikes {
		if hit.from <= from && to <= s.believes(hit, told) {
			return true
		}
	}
	return false
}

// believes is the latest time at which the holder of a struck grant may still believe in it.
func (s *story) believes(hit strike, told int64) int64 {
	e := min(hit.till, told)
	if e == never || s.rules.Endless {
		return never
	}
	return max(e, hit.from) + int64(s.rules.Lease)
}

func (s *story) overlap(older, newer *grant, from, to int64) Violation {
	return Violation{
		Rule: RuleExclusion, Key: older.key, From: from, To: to,
		Text: fmt.Sprintf("two holders from %s to %s: %v, held it from %s to %s, and %v, from %s to %s%s",
			s.at(from), s.at(to), older, s.at(older.first), s.at(older.last),
			newer, s.at(newer.first), s.at(newer.last), s.noExcuse(older, newer.ret)),
	}
}

// noExcuse says what was too early or too late.
func (s *story) noExcuse(g *grant, told int64) string {
	if len(g.strikes) == 0 {
		return "; nobody had broken or reclaimed it"
	}
	hit := g.strikes[0]
	return fmt.Sprintf("; token %d was %s, which excuses from %s to %s only", g.token, hit.what, s.at(hit.from), s.at(s.believes(hit, told)))
}
