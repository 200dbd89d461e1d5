package history

import "fmt"

// checkRefused demands that a writer whom the fenced register refused, because another had the key, no longer held it. The
// refusal itself is no violation: a holder that was stopped before its write, or whose grant was broken, may write too late.
func (s *story) checkRefused(f *findings) {
	highest := map[string]*Record{} // by key
	told := map[*grant]bool{}
	for _, w := range s.writes {
		top := highest[w.Key]
		switch {
		case !w.Fenced:
		case w.Accepted:
			if g := s.grants[w.grant()]; g == nil || !g.mode.Shared {
				highest[w.Key] = w
			}
		case top != nil:
			g := s.grants[w.grant()]
			if g == nil || !g.held || g.last <= w.At || told[g] || s.excused(g, top.At, w.At, g.last) {
				continue
			}
			told[g] = true
			f.add(Violation{
				Rule: RuleExclusion, Key: g.key, From: w.At, To: g.last,
				Text: fmt.Sprintf("two holders: %v, was refused by the register at %s, because of %v, at %s, and yet held until %s%s",
					g, s.at(w.At), top.grant(), s.at(top.At), s.at(g.last), s.noExcuse(g, top.At)),
			})
		}
	}
}
