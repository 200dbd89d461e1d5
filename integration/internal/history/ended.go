package history

import "fmt"

// checkEnded demands that a lock which has ended for its holder stays ended. A holder has observed the end when Err was not
// nil, when Release returned, whatever its result, and when Verify said so.
func (s *story) checkEnded(f *findings) {
	for _, key := range s.names() {
		for _, g := range s.keys[key] {
			if g.held && g.last > g.ended {
				f.add(s.revived(g, g.last, "Err was nil"))
			}
			for _, c := range g.verified {
				if c.invoke.At > g.ended {
					f.add(s.revived(g, c.invoke.At, "Verify confirmed it"))
					break
				}
			}
		}
	}
}

func (s *story) revived(g *grant, at int64, how string) Violation {
	return Violation{
		Rule: RuleEnded, Key: g.key, From: g.ended, To: at,
		Text: fmt.Sprintf("the lock of %v, had ended at %s (%s), and was live again at %s: %s", g, s.at(g.ended), g.endedHow, s.at(at), how),
	}
}
