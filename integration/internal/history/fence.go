package history

import "fmt"

// checkFence demands that the fenced register accepted only rising tokens and refused only lower ones, and that refused
// writers no longer held the key. A refusal is no violation: a holder that was stopped before its write, or whose grant was
// broken, may write too late.
func (s *story) checkFence(f *findings) {
	highest := map[string]*Record{} // by key
	told := map[*grant]bool{}
	for _, w := range s.writes {
		if !w.Fenced {
			continue
		}
		top := highest[w.Key]
		switch {
		case w.Accepted && (top == nil || w.Token >= top.Token):
			highest[w.Key] = w
		case w.Accepted:
			f.add(s.wrote(top, w, "the register went back: it accepted"))
		case top == nil || w.Token >= top.Token:
			f.add(s.wrote(top, w, "the register refused a token that was not too low:"))
		default:
			g := s.grants[grantID{w.Process, w.Key, w.Token}]
			if g == nil || !g.held || g.last <= w.At || told[g] || s.excused(g, top.At, w.At, g.last) {
				continue
			}
			told[g] = true
			f.add(s.heldOn(g, top, w))
		}
	}
}

func (s *story) wrote(top, w *Record, what string) Violation {
	v := Violation{
		Rule: RuleFence, Key: w.Key, Processes: []string{w.Process}, Tokens: []uint64{w.Token}, From: w.At, To: w.At,
		Text: fmt.Sprintf("%s token %d, of process %q, at %s", what, w.Token, w.Process, s.at(w.At)),
	}
	if top != nil {
		v.Processes, v.Tokens, v.From = append(v.Processes, top.Process), append(v.Tokens, top.Token), top.At
		v.Text += fmt.Sprintf(", after token %d, of process %q, at %s", top.Token, top.Process, s.at(top.At))
	}
	return v
}

// heldOn is the violation of a holder that still held the key after its write was refused because another had it.
func (s *story) heldOn(g *grant, top, w *Record) Violation {
	return Violation{
		Rule: RuleExclusion, Key: g.key, Processes: []string{g.process, top.Process}, Tokens: []uint64{g.token, top.Token},
		From: w.At, To: g.last,
		Text: fmt.Sprintf("two holders: token %d, of process %q, was refused by the register at %s, because of token %d, of process %q, at %s, and yet held until %s%s",
			g.token, g.process, s.at(w.At), top.Token, top.Process, s.at(top.At), s.at(g.last), s.noExcuse(g, top.At)),
	}
}
