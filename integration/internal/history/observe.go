package history

import (
	"cmp"
	"fmt"
	"slices"
)

// addTold assigns a told state to its observation.
func (s *story) addTold(r *Record, f *findings) {
	c := s.byID[callID{r.Process, r.Op}]
	if c == nil || c.invoke == nil || c.invoke.Call != Observe || c.invoke.Key != r.Key ||
		r.At < c.invoke.At || c.ret != nil && r.At > c.ret.At {
		f.add(s.malformed(r, "no observation of key %q was under way as operation %d", r.Key, r.Op))
		return
	}
	c.told = append(c.told, r)
}

// checkObservers demands that observers are told of grants that were made, in their order, and of the last state; and that a refusal
// names a grant that was made.
func (s *story) checkObservers(f *findings) {
	for _, c := range s.calls {
		switch {
		case c.invoke == nil:
		case c.invoke.Call == Observe:
			s.checkOrder(c, f)
			s.checkData(c, f)
			s.checkLast(c, f)
		case c.ret != nil && c.ret.Named != nil:
			told := *c.ret
			told.Token, told.Owner = told.Named.Token, told.Named.Owner
			if wrong := s.unmade(&told); wrong != "" {
				f.add(s.mistold(&told, "%s", wrong))
			}
		}
	}
}

// holders returns all holders that a state tells of.
func (r *Record) holders() []Holder {
	if r.Token == 0 {
		return nil
	}
	return append([]Holder{{r.Token, r.Owner, r.Data}}, r.Others...)
}

func (r *Record) tells(token uint64) bool {
	return slices.ContainsFunc(r.holders(), func(h Holder) bool { return h.Token == token })
}

// checkOrder demands that the holders of a state may hold the key together and were granted it, that no state is told twice in a row, that
// no grant comes back, that tokens rise between grants that exclude each other, and that no grant is held that a state shows to be over.
func (s *story) checkOrder(c *call, f *findings) {
	var last *Record
	told := map[uint64]bool{}
	tops := map[Mode]uint64{} // the highest token of each mode
	for _, r := range c.told {
		holders := r.holders()
		if last != nil && last.Mode == r.Mode && slices.Equal(last.holders(), holders) {
			f.add(s.mistold(r, "the same state twice in a row"))
		}
		if room := r.Mode.room(); len(holders) > room {
			f.add(s.mistold(r, "%d hold it, and at most %d can", len(holders), room))
		}
		if wrong := s.unmade(r); wrong != "" {
			f.add(s.mistold(r, "%s", wrong))
		}
		for i, h := range holders {
			switch highest := above(tops, r.Mode); {
			case i > 0 && h.Token <= holders[i-1].Token:
				f.add(s.mistold(r, "token %d stands before token %d", holders[i-1].Token, h.Token))
			case told[h.Token] && !last.tells(h.Token):
				f.add(s.mistold(r, "token %d comes back", h.Token))
			case h.Token < highest:
				f.add(s.mistold(r, "token %d is lower than token %d, which was told before", h.Token, highest))
			}
		}
		for _, h := range holders {
			told[h.Token], tops[r.Mode] = true, max(tops[r.Mode], h.Token)
		}
		for _, g := range s.keys[r.Key] {
			over := !r.tells(g.token) && (told[g.token] || above(tops, g.mode) > g.token)
			if over && g.held && g.last > r.At && !s.excused(g, r.At, r.At, g.last) {
				f.add(s.mistold(r, "%v, held it until %s%s", g, s.at(g.last), s.noExcuse(g, r.At)))
			}
		}
		last = r
	}
}

// checkData demands that the data of a grant was set by its holder before it was told, and that no older data follows.
func (s *story) checkData(c *call, f *findings) {
	latest := map[uint64]int{} // the last told data, by the number of the call that set it
	for _, r := range c.told {
		for _, h := range r.holders() {
			known := s.withToken(r.Key, h.Token)
			if len(known) == 0 {
				continue // its call never returned
			}
			n := 0
			if h.Data != "" {
				n = 1 + slices.IndexFunc(known[0].data, func(set *call) bool { return set.invoke.Data == h.Data && set.invoke.At <= r.At })
			}
			switch {
			case h.Data != "" && n == 0:
				f.add(s.mistold(r, "token %d with data %q, which its holder had not set", h.Token, h.Data))
			case n < latest[h.Token]:
				f.add(s.mistold(r, "token %d with data %q, which is older than data that was told before", h.Token, h.Data))
			}
			latest[h.Token] = max(latest[h.Token], n)
		}
	}
}

// unmade says which of the told grants cannot have been made by then. The engine may have made a grant whose client never learned of it,
// or gave it back at once: then its owner had asked.
func (s *story) unmade(r *Record) string {
	for _, h := range r.holders() {
		switch known := s.withToken(r.Key, h.Token); {
		case len(known) > 0 && (known[0].owner != h.Owner || known[0].invoke > r.At), len(known) == 0 && !s.wanted(r, h):
			return fmt.Sprintf("token %d, a grant that no client had by then", h.Token)
		case len(known) > 0 && known[0].mode != r.Mode && !s.befell(known[0].ret, r.At, s.hushed): // half of the state was read before
			return fmt.Sprintf("as held%v, by %v", r.Mode, known[0])
		}
	}
	return ""
}

// wanted reports whether a grant that was never returned may have been made by the time it was told. A call that was granted a lower
// token made no other grant, unless a fault delayed one of its requests.
func (s *story) wanted(r *Record, h Holder) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool {
		if c.invoke == nil || !c.invoke.acquires() || c.invoke.Key != r.Key || c.invoke.At > r.At || c.invoke.Mode != r.Mode {
			return false
		}
		if !c.granted() {
			return c.invoke.Owner == h.Owner
		}
		return cmp.Or(c.ret.Owner, c.invoke.Owner) == h.Owner && (c.ret.Token > h.Token || s.disturbed(c.invoke.At, c.ret.At))
	})
}

// checkLast demands that an observation that is under way when all is quiet was told that the key is free.
func (s *story) checkLast(c *call, f *findings) {
	over := int64(never)
	if gone, ok := s.gone[c.invoke.Process]; ok {
		over = gone
	}
	if c.ret != nil {
		over = c.ret.At
	}
	if s.quiet == never || c.invoke.At > s.quiet || over < s.quiet || !s.isFree(c.invoke.Key) {
		return
	}
	what := "was told nothing"
	for _, r := range c.told {
		if r.At > s.quiet {
			break
		}
		if what = ""; r.Token != 0 {
			what = fmt.Sprintf("was last told, at %s, of token %d", s.at(r.At), r.Token)
		}
	}
	if what != "" {
		f.add(Violation{
			Rule: RuleObserve, Key: c.invoke.Key, From: s.quiet, To: s.quiet,
			Text: fmt.Sprintf("process %q, observing since %s, %s, though all was quiet at %s and the key was free",
				c.invoke.Process, s.at(c.invoke.At), what, s.at(s.quiet)),
		})
	}
}

// isFree reports whether a key was confirmed to be free when all was quiet.
func (s *story) isFree(key string) bool {
	var last *grant
	for _, g := range slices.Backward(s.keys[key]) {
		switch {
		case g.invoke > s.quiet:
			continue
		case last != nil && last.mode.excludes(g.mode):
			return true // g was over before the last was granted
		case s.freed(g) > s.quiet:
			return false
		}
		last = cmp.Or(last, g)
	}
	return true
}

func (s *story) mistold(r *Record, format string, args ...any) Violation {
	what := "that the key is free"
	if r.Token != 0 {
		what = fmt.Sprintf("token %d, of %q%v", r.Token, r.Owner, r.Mode)
	}
	for _, h := range r.Others {
		what += fmt.Sprintf(", and token %d, of %q", h.Token, h.Owner)
	}
	return Violation{
		Rule: RuleObserve, Key: r.Key, From: r.At, To: r.At,
		Text: fmt.Sprintf("process %q was told at %s %s: %s", r.Process, s.at(r.At), what, fmt.Sprintf(format, args...)),
	}
}

// checkFree demands that no grant stays behind: when all is quiet, a try is refused only because of calls that were made since then.
// So a process that tries for all permits of a key, one after the other, finds lost permits.
func (s *story) checkFree(f *findings) {
	for _, c := range s.calls {
		if c.invoke == nil || c.invoke.Call != Try || c.outcome() != Refused || c.invoke.At <= s.quiet {
			continue
		}
		permits := 0
		if !slices.ContainsFunc(s.calls, func(other *call) bool {
			switch {
			case other == c || !s.inTheWay(other, c):
				return false
			case other.granted() && !other.invoke.Mode.excludes(c.invoke.Mode):
				permits++
				return c.invoke.Mode.Limit > 0 && permits >= c.invoke.Mode.Limit
			}
			return true
		}) {
			f.add(Violation{
				Rule: RuleFree, Key: c.invoke.Key, From: c.invoke.At, To: c.ret.At,
				Text: fmt.Sprintf("process %q was refused%v at %s, though all was quiet at %s, and since then %d were granted that may still be held",
					c.invoke.Process, c.invoke.Mode, s.at(c.ret.At), s.at(s.quiet), permits),
			})
		}
	}
}

// inTheWay reports whether another call since all was quiet may have been in the way of a refused try.
func (s *story) inTheWay(other, c *call) bool {
	if other.invoke == nil || !other.invoke.acquires() || other.invoke.Key != c.invoke.Key ||
		other.invoke.At <= s.quiet || other.invoke.At > c.ret.At {
		return false
	}
	switch {
	case other.granted():
		g := s.grants[grantID{other.ret.Process, other.invoke.Key, other.ret.Token}]
		return g == nil || s.freed(g) >= c.invoke.At
	case other.ret != nil:
		return other.ret.At >= c.invoke.At
	}
	return true
}
