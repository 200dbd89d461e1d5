package history

import (
	"slices"
	"strings"
)

// A fault is what a run did to processes, servers, or what is between them.
type fault struct {
	begin *Record
	till  int64 // never, if there is no record of its end
}

// disturbed reports whether a fault was under way during a call.
func (s *story) disturbed(c *call) bool { return s.disturbedSince(c.invoke.At, c.ret.At) }

// disturbedSince reports whether a fault was under way between two moments.
func (s *story) disturbedSince(from, to int64) bool {
	return s.befell(from, to, func(*Record) bool { return true })
}

// endangered reports whether a fault was under way between two moments that may end a lease.
func (s *story) endangered(from, to int64) bool {
	return s.befell(from, to, func(begin *Record) bool {
		switch {
		case !slices.Contains(s.rules.Endured, begin.Fault):
			return true
		case slices.Contains(s.rules.Singly, begin.Fault):
			return s.befell(from, to, func(other *Record) bool { return other != begin && other.victim() == begin.victim() })
		}
		return false
	})
}

// befell reports whether one of the faults was under way between two moments.
func (s *story) befell(from, to int64, counts func(begin *Record) bool) bool {
	for _, f := range s.faults {
		if f.begin.At <= to && from <= f.till && counts(f.begin) {
			return true
		}
	}
	return false
}

// victim is whom or what a fault hits, without the part of it.
func (r *Record) victim() string {
	victim, _, _ := strings.Cut(r.Target, ",")
	return victim
}
