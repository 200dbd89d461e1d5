package history

import (
	"cmp"
	"fmt"
	"slices"
)

// twice is the violation of one token for two grants.
func (s *story) twice(a, b *grant) Violation {
	if b.ret < a.ret {
		a, b = b, a
	}
	return Violation{
		Rule: RuleTokens, Key: a.key, From: a.ret, To: b.ret,
		Text: fmt.Sprintf("token %d was granted twice: to process %q at %s, and to process %q at %s",
			a.token, a.process, s.at(a.ret), b.process, s.at(b.ret)),
	}
}

// checkTokens demands for each key that no two grants share a token; and of those that exclude each other, that
// if one grant returned before another was invoked, the later has the higher token; and that holds, in the order of their
// first stamps, have rising tokens. The last does not apply to a grant struck before its first stamp:
// its successor may look at its lock before the process of the broken grant does.
func (s *story) checkTokens(f *findings) {
	for _, key := range s.names() {
		grants := s.keys[key]
		for i := 1; i < len(grants); i++ {
			if grants[i].token == grants[i-1].token {
				f.add(s.twice(grants[i-1], grants[i]))
			}
		}
		s.checkTold(grants, f)
		s.checkStamped(grants, f)
	}
}

// checkTold compares each grant, in the order of the calls, with the highest token returned by then to one that excludes it.
func (s *story) checkTold(grants []*grant, f *findings) {
	byInvoke := slices.SortedFunc(slices.Values(grants), func(a, b *grant) int { return cmp.Compare(a.invoke, b.invoke) })
	byReturn := slices.SortedFunc(slices.Values(grants), func(a, b *grant) int { return cmp.Compare(a.ret, b.ret) })
	byMode := map[Mode]*grant{}
	for _, g := range byInvoke {
		for len(byReturn) > 0 && byReturn[0].ret < g.invoke {
			raise(byMode, byReturn[0])
			byReturn = byReturn[1:]
		}
		if highest := topOf(byMode, g.mode); highest != nil && highest.token > g.token {
			f.add(s.fell(highest, g, highest.ret, g.invoke, "granted", "asked for"))
		}
	}
}

func (s *story) checkStamped(grants []*grant, f *findings) {
	byMode := map[Mode]*grant{}
	for _, g := range holdsOf(grants) {
		highest := topOf(byMode, g.mode)
		raise(byMode, g)
		switch {
		case highest == nil || g.token > highest.token:
		case highest.ret < g.invoke, g.first <= highest.last: // checkTold and checkExclusion have said so
		case g.token < highest.token && !g.struckBefore(g.first):
			f.add(s.fell(highest, g, highest.first, g.first, "first held", "first held"))
		}
	}
}

func (s *story) fell(high, low *grant, from, to int64, what, then string) Violation {
	return Violation{
		Rule: RuleTokens, Key: high.key, From: from, To: to,
		Text: fmt.Sprintf("tokens fell: process %q was %s it with token %d at %s, process %q %s it with token %d later, at %s",
			high.process, what, high.token, s.at(from), low.process, then, low.token, s.at(to)),
	}
}

// holdsOf returns the grants that have stamps, in the order of the first of them.
func holdsOf(grants []*grant) []*grant {
	var holds []*grant
	for _, g := range grants {
		if g.held {
			holds = append(holds, g)
		}
	}
	slices.SortFunc(holds, func(a, b *grant) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.token, b.token)) })
	return holds
}

func (g *grant) struckBefore(at int64) bool { return len(g.strikes) > 0 && g.strikes[0].from < at }
