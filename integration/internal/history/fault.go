package history

import (
	"slices"
	"strings"
)

// A fault is what a run did to processes, servers or the network.
type fault struct {
	begin *Record
	till  int64 // never if no record shows its end
}

// disturbed reports whether a fault was under way between two moments.
func (s *story) disturbed(from, to int64) bool {
	return s.befell(from, to, func(*Record) bool { return true })
}

// endangered reports whether a fault that can cost a lease was under way between two moments.
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

// befell reports whether a fault that counts was under way between two moments.
func (s *story) befell(from, to int64, counts func(begin *Record) bool) bool {
	for _, f := range s.faults {
		if f.begin.At <= to && from <= f.till && counts(f.begin) {
			return true
		}
	}
	return false
}

// hushed reports whether the engine tells clients nothing during a fault.
func (s *story) hushed(begin *Record) bool { return slices.Contains(s.rules.Hushed, begin.Fault) }

// victim is the first part of a fault's target.
func (r *Record) victim() string {
	victim, _, _ := strings.Cut(r.Target, ",")
	return victim
}
