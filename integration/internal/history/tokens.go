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

// checkTokens demands for each key that no two grants share a token; and of two that exclude each other, that the one that was invoked
// after the other had returned has the higher token. Holds in another order overlap the return of the higher token: see checkExclusion.
func (s *story) checkTokens(f *findings) {
	for _, key := range s.names() {
		grants := s.keys[key]
		for i := 1; i < len(grants); i++ {
			if grants[i].token == grants[i-1].token {
				f.add(s.twice(grants[i-1], grants[i]))
			}
		}
		byInvoke := slices.SortedFunc(slices.Values(grants), func(a, b *grant) int { return cmp.Compare(a.invoke, b.invoke) })
		byReturn := slices.SortedFunc(slices.Values(grants), func(a, b *grant) int { return cmp.Compare(a.ret, b.ret) })
		tops := map[Mode]uint64{}
		for _, g := range byInvoke {
			for len(byReturn) > 0 && byReturn[0].ret < g.invoke {
				tops[byReturn[0].mode] = max(tops[byReturn[0].mode], byReturn[0].token)
				byReturn = byReturn[1:]
			}
			if highest := above(tops, g.mode); highest > g.token {
				f.add(Violation{
					Rule: RuleTokens, Key: key, From: g.invoke, To: g.ret,
					Text: fmt.Sprintf("tokens fell: %v, asked for it at %s, when token %d had been granted", g, s.at(g.invoke), highest),
				})
			}
		}
	}
}
