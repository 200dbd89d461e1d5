package history

import (
	"cmp"
	"math"
)

// A strike ends the grant of another process: a break, or an acquisition that reclaims.
type strike struct {
	from    int64 // it cannot have had an effect before
	till    int64 // nor later than this; never, if that is not known
	sure    bool  // it has had the effect
	reclaim bool
	gentle  bool // no successor is granted the key before the holder knows
	what    string
}

// addBreak notes which grants may have been broken. A call that returns Gone may have sent an earlier request that was
// carried out without a reply. Any outcome but OK leaves open whether the break took effect, and when.
func (s *story) addBreak(c *call) {
	hit := strike{from: c.invoke.At, till: never, what: "broken by " + c.invoke.Process, gentle: s.rules.Watched && !c.invoke.Now}
	if c.outcome() == OK {
		hit.till, hit.sure = c.ret.At, true
	}
	for _, g := range s.withToken(c.invoke.Key, c.invoke.Token) {
		g.strikes = append(g.strikes, hit)
	}
}

// addReclaim notes which grants an acquisition may have reclaimed: grants of the same owner in other processes. Its token is
// greater than theirs, and they had ended when it returned. A request that arrives later does not end a grant that was asked for after
// the acquisition had returned.
func (s *story) addReclaim(c *call) {
	r := c.invoke
	hit := strike{from: r.At, till: never, reclaim: true, what: "reclaimed by " + r.Process}
	owner, granted := r.Owner, uint64(math.MaxUint64)
	switch at, ended := s.gone[r.Process]; {
	case c.outcome() == OK:
		hit.till = c.ret.At
		owner, granted = cmp.Or(c.ret.Owner, owner), c.ret.Token
	case ended:
		hit.till = at + int64(s.rules.Late)
	}
	known := hit.till
	if c.ret != nil {
		known = c.ret.At
	}
	for _, g := range s.byOwner[ownedKey{r.Key, owner}] {
		if g.token >= granted {
			break
		}
		seen := g.lastSeen()
		if g.released != nil && g.released.outcome() == Gone { // it has stood until then, for all that its holder knew
			seen = max(seen, g.released.ret.At)
		}
		if g.process != r.Process && g.invoke <= known && hit.from <= seen {
			g.strikes = append(g.strikes, hit)
		}
	}
}
