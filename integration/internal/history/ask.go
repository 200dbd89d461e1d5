package history

import (
	"fmt"
	"slices"
)

// checkAsks demands that a holder is notified of an ask, and of nothing else: while nothing is wrong, within a lease, because DynamoDB
// notifies it with a heartbeat.
func (s *story) checkAsks(f *findings) {
	lease := int64(s.rules.Lease)
	for _, g := range s.grants {
		if g.asked != nil && !slices.ContainsFunc(g.asks, func(c *call) bool { return c.invoke.At <= g.asked.At }) {
			f.add(Violation{
				Rule: RuleAsk, Key: g.key, From: g.invoke, To: g.asked.At,
				Text: fmt.Sprintf("the lock of %v, was told at %s that it is asked for, but no client had asked", g, s.at(g.asked.At)),
			})
		}
		if !s.rules.Steady || g.all || !g.held { // a holder of several looks at one after the other
			continue
		}
		for _, c := range g.asks {
			if c.outcome() != OK {
				continue
			}
			till := max(c.ret.At, g.ret) + lease
			if g.last >= till && (g.asked == nil || g.asked.At > till) && !s.disturbed(c.invoke.At, till) {
				f.add(Violation{
					Rule: RuleAsk, Key: g.key, From: g.invoke, To: c.ret.At,
					Text: fmt.Sprintf("the lock of %v, was asked for at %s, and its holder was not told within a lease", g, s.at(c.ret.At)),
				})
				break
			}
		}
	}
}
