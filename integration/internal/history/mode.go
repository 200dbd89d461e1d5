package history

import (
	"fmt"
	"math"
)

// Mode is how a lock is held. The zero Mode excludes all others.
type Mode struct {
	Shared bool `json:"shared,omitempty"` // together with others that are shared, with the same limit
	Limit  int  `json:"limit,omitempty"`  // at most so many at a time; 0: no limit
}

// excludes reports whether grants of the two modes must not overlap.
func (m Mode) excludes(other Mode) bool { return !m.Shared || m != other }

// room is how many grants of the mode may overlap.
func (m Mode) room() int {
	switch {
	case !m.Shared:
		return 1
	case m.Limit > 0:
		return m.Limit
	}
	return math.MaxInt
}

// String returns the mode as it stands behind a grant.
func (m Mode) String() string {
	switch {
	case m.Limit > 0:
		return fmt.Sprintf(", one of %d", m.Limit)
	case m.Shared:
		return ", shared"
	}
	return ""
}

// above returns the highest token of the modes that exclude a mode, or 0.
func above(tops map[Mode]uint64, mode Mode) uint64 {
	highest := uint64(0)
	for m, token := range tops {
		if m.excludes(mode) {
			highest = max(highest, token)
		}
	}
	return highest
}
