package history

import (
	"cmp"
	"fmt"
	"slices"
)

type grantID struct {
	process, key string
	token        uint64
}

func (id grantID) String() string { return fmt.Sprintf("process %q, token %d", id.process, id.token) }

// A grant is the result of a successful acquire or try.
type grant struct {
	grantID
	owner       string
	mode        Mode
	invoke, ret int64 // of the call
	ttl         int64 // that it was asked for with
	all         bool  // it may have been made long before the call returned

	held        bool  // there is a stamp
	first, last int64 // stamps

	verified []*call // with OK
	released *call   // the first call of release
	ended    int64   // the earliest time at which the holder has observed the end, or never
	endedHow string
	lost     *Record
	strikes  []strike
	led      *call // of Lead, if this is a term
	asks     []*call
	asked    *Record // the holder was notified of an ask
	data     []*call // of SetData, in the order of time
	resigned []*call // with OK
}

// String names the grant, and says how it is held if that excludes not all others.
func (g *grant) String() string { return g.grantID.String() + g.mode.String() }

// end notes that the holder knew at a time that its lock had ended.
func (g *grant) end(at int64, how string) {
	if at < g.ended {
		g.ended, g.endedHow = at, how
	}
}

// lastSeen is when the history last shows the holder with its lock, or learning of its end. Later events need no excuse and
// explain nothing.
func (g *grant) lastSeen() int64 {
	seen := g.ret
	if g.held {
		seen = max(seen, g.last)
	}
	if g.released != nil {
		seen = max(seen, g.released.invoke.At)
	}
	if g.lost != nil {
		seen = max(seen, g.lost.At)
	}
	return seen
}

// freed is when the release of a grant was confirmed, or never.
func (s *story) freed(g *grant) int64 {
	at := int64(never)
	if g.released != nil && g.released.outcome() == OK {
		at = g.released.ret.At
	}
	if c := s.closes[g.process]; c != nil && c.outcome() == OK {
		at = min(at, c.ret.At)
	}
	return at
}

// withToken returns the grants of a key with a token: one, in a correct history.
func (s *story) withToken(key string, token uint64) []*grant {
	grants := s.keys[key]
	i, _ := slices.BinarySearchFunc(grants, token, func(g *grant, t uint64) int { return cmp.Compare(g.token, t) })
	n := i
	for n < len(grants) && grants[n].token == token {
		n++
	}
	return grants[i:n]
}
