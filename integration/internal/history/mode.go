package history

import (
	"fmt"
	"math"
)

// Mode is how a lock is held. The zero Mode is that of a lock which excludes all others.
type Mode struct {
	Shared bool `json:"shared,omitempty"` // together with others that are shared, with the same limit
	Limit  int  `json:"limit,omitempty"`  // at most so many at a time; 0: no limit
}

// excludes reports whether grants of the two modes must not overlap.
func (m Mode) excludes(other Mode) bool { return !m.Shared || m != other }

// room is how many may have a key at a time.
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

// topOf returns, of one grant for each mode, the one with the highest token of those that exclude a mode; nil if none does.
func topOf(byMode map[Mode]*grant, mode Mode) *grant {
	var top *grant
	for m, g := range byMode {
		if m.excludes(mode) && (top == nil || g.token > top.token) {
			top = g
		}
	}
	return top
}

// raise keeps the grant with the highest token for each mode.
func raise(byMode map[Mode]*grant, g *grant) {
	if top := byMode[g.mode]; top == nil || g.token > top.token {
		byMode[g.mode] = g
	}
}
