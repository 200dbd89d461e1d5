package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// addTold assigns what was told to its observation.
func (s *story) addTold(r *Record, f *findings) {
	c := s.byID[callID{r.Process, r.Op}]
	if c == nil || c.invoke == nil || c.invoke.Call != Observe || c.invoke.Key != r.Key || r.At < c.invoke.At || c.ret != nil && r.At > c.ret.At {
		f.add(s.malformed(r, "no observation of key %q was under way as operation %d", r.Key, r.Op))
		return
	}
	c.told = append(c.told, r)
}

// checkObservers demands that what an observer is told is a part of what happened, in its order, and ends as that does.
func (s *story) checkObservers(f *findings) {
	keys := map[string]*observed{}
	for _, c := range s.calls {
		if c.invoke == nil || c.invoke.Call != Observe {
			continue
		}
		key := c.invoke.Key
		if keys[key] == nil {
			keys[key] = s.observed(key)
		}
		s.checkOrder(c, f)
		s.checkData(c, f)
		s.checkMoments(c, keys[key], f)
		s.checkLast(c, f)
	}
}

// holders returns all who were told to hold the key.
func (r *Record) holders() []Holder {
	if r.Token == 0 {
		return nil
	}
	return append([]Holder{{r.Token, r.Owner, r.Data}}, r.Others...)
}

func (r *Record) tells(token uint64) bool {
	return slices.ContainsFunc(r.holders(), func(h Holder) bool { return h.Token == token })
}

// checkOrder demands of what is told that those who hold the key may do so together, that nothing is told twice in a row,
// that nothing comes back that was over, and that tokens rise between those who exclude each other.
func (s *story) checkOrder(c *call, f *findings) {
	var last *Record
	told := map[uint64]bool{}
	tops := map[Mode]uint64{} // the highest token of each mode
	for _, r := range c.told {
		holders := r.holders()
		if last != nil && last.Mode == r.Mode && slices.Equal(last.holders(), holders) {
			f.add(s.mistold(r, "the same twice in a row"))
		}
		if room := r.Mode.room(); len(holders) > room {
			f.add(s.mistold(r, "%d hold it, and no more than %d can", len(holders), room))
		}
		for i, h := range holders {
			switch highest := above(tops, r.Mode); {
			case i > 0 && h.Token <= holders[i-1].Token:
				f.add(s.mistold(r, "token %d stands before token %d", holders[i-1].Token, h.Token))
			case told[h.Token] && !last.tells(h.Token):
				f.add(s.mistold(r, "token %d is of a grant that it had been told was over", h.Token))
			case h.Token < highest:
				f.add(s.mistold(r, "token %d, a token lower than %d, which it had been told before", h.Token, highest))
			}
		}
		for _, h := range holders {
			told[h.Token], tops[r.Mode] = true, max(tops[r.Mode], h.Token)
		}
		last = r
	}
}

// checkData demands that the data which is told of a grant was set by its holder, by then, and that no older data follows.
func (s *story) checkData(c *call, f *findings) {
	latest := map[uint64]int{} // the data that was told last, by the number of its setting
	for _, r := range c.told {
		for _, h := range r.holders() {
			known := s.withToken(r.Key, h.Token)
			if len(known) == 0 {
				continue // what it had we do not know
			}
			n := 0
			if h.Data != "" {
				n = 1 + slices.IndexFunc(known[0].data, func(set *call) bool { return set.invoke.Data == h.Data && set.invoke.At <= r.At })
			}
			switch {
			case h.Data != "" && n == 0:
				f.add(s.mistold(r, "token %d with data %q, which its holder had not set", h.Token, h.Data))
			case n < latest[h.Token]:
				f.add(s.mistold(r, "token %d with data %q, which is older than what it had been told before", h.Token, h.Data))
			}
			latest[h.Token] = max(latest[h.Token], n)
		}
	}
}

// above returns the highest token of those that exclude a mode.
func above(tops map[Mode]uint64, mode Mode) uint64 {
	highest := uint64(0)
	for m, token := range tops {
		if m.excludes(mode) {
			highest = max(highest, token)
		}
	}
	return highest
}

// observed is what the tellings of a key are compared with.
type observed struct {
	grants []*grant // in the order of their invokes
	asked  map[string][]*call
}

func (s *story) observed(key string) *observed {
	o := &observed{asked: map[string][]*call{}}
	o.grants = slices.SortedFunc(slices.Values(s.keys[key]), func(a, b *grant) int { return cmp.Compare(a.invoke, b.invoke) })
	for _, c := range s.calls { // in the order of time
		if c.invoke != nil && c.invoke.acquires() && c.invoke.Key == key {
			owner := c.invoke.Owner
			if c.granted() {
				owner = cmp.Or(c.ret.Owner, owner)
			}
			o.asked[owner] = append(o.asked[owner], c)
		}
	}
	return o
}

// checkMoments demands that each state which was told was so at some moment before, and at no earlier one than the state
// told before it. At such a moment
//
//   - each grant that was told of had been made, and its release had not been confirmed
//   - no other was certainly held, between its return and its last sign of life
//   - those were over that were told of before and are not now, and those of lower tokens that exclude one that was told of
//   - and none of a higher token had returned that excludes one that was told of now
//
// A strike is an excuse, as it is between holders. What the observer's own client had is left out once that has shown its
// last sign of life. Each state takes the earliest moment that is left to it.
func (s *story) checkMoments(c *call, o *observed, f *findings) {
	at, next := int64(math.MinInt64), 0
	var active []*grant // which may have been held at that moment, or later
	told := map[uint64]bool{}
	tops := map[Mode]uint64{}
	for _, r := range c.told {
		for ; next < len(o.grants) && o.grants[next].invoke <= r.At; next++ {
			active = append(active, o.grants[next])
		}
		active = slices.DeleteFunc(active, func(g *grant) bool { return s.alive(g) < at && !r.tells(g.token) })
		holders := r.holders()
		if wrong := s.unmade(r, o); wrong != "" {
			f.add(s.mistold(r, "%s", wrong))
			continue
		}
		for _, h := range holders {
			told[h.Token], tops[r.Mode] = true, max(tops[r.Mode], h.Token)
		}
		m := moment{from: at, to: r.At}
		for _, g := range active {
			s.narrow(&m, r, g, told[g.token] || above(tops, g.mode) > g.token)
		}
		if wrong := m.find(s); wrong != "" {
			f.add(s.mistold(r, "%s", wrong))
			continue
		}
		at = m.from
	}
}

// A moment is one at which a state can have been so that was told.
type moment struct {
	from, to int64
	after    *grant // why not before from, if it is not the state told before
	before   string // why not after to, if it is not the time at which it was told
	holds    []span // it is in none of them
	wrong    string // why there is none at all
}

// A span is the time in which a grant was certainly held: between its ends.
type span struct {
	*grant
	from, to int64
}

// alive is the last moment at which a grant was certainly held.
func (s *story) alive(g *grant) int64 {
	first, _, _ := s.endOf(g)
	return first
}

// narrow leaves out the moments at which a state that was told contradicts a grant. over says that it was told to be over,
// unless it is a part of the state.
func (s *story) narrow(m *moment, r *Record, g *grant, over bool) {
	alive := s.alive(g)
	switch {
	case r.tells(g.token):
		m.from = max(m.from, g.invoke)
		m.notAfter(s.freed(g), fmt.Sprintf("although the release of %v, had been confirmed", g))
	case over && g.held && g.last > r.At && !s.excused(g, r.At, r.At, g.last):
		m.wrong = s.outlives(g, g.last) + s.noExcuse(g, r.At)
	case g.process == r.Process && (over || alive <= r.At): // its client leaves it out of whatever it has read
	case over:
		if alive > m.from {
			m.from, m.after = alive, g
		}
	default:
		m.holds = append(m.holds, span{g, g.ret, alive})
		for _, h := range r.holders() {
			if r.Mode.excludes(g.mode) && h.Token < g.token {
				m.notAfter(g.ret, fmt.Sprintf("although %v, had been granted it", g))
			}
		}
	}
}

func (m *moment) notAfter(at int64, why string) {
	if at < m.to {
		m.to, m.before = at, why
	}
}

func (s *story) outlives(g *grant, until int64) string {
	return fmt.Sprintf("although %v, held it until %s", g, s.at(until))
}

// find moves from to the earliest moment, or says why there is none.
func (m *moment) find(s *story) string {
	if m.wrong != "" {
		return m.wrong
	}
	slices.SortFunc(m.holds, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, h := range m.holds {
		if h.from < m.from && m.from < h.to {
			m.from, m.after = h.to, h.grant
		}
	}
	switch {
	case m.from <= m.to:
		return ""
	case m.before != "":
		return m.before + " at " + s.at(m.to)
	case m.after != nil:
		return s.outlives(m.after, m.from)
	}
	return "what it had been told before was so later, at " + s.at(m.from)
}

// unmade says which of the grants that were told of nobody had by then, as far as anybody knows. The engine may have granted
// what its client never learned of, or gave back at once: then its owner had asked, and had not been granted a lower token
// by the same call, unless a fault can have made a request of that call late.
func (s *story) unmade(r *Record, o *observed) string {
	for _, h := range r.holders() {
		switch known := s.withToken(r.Key, h.Token); {
		case len(known) > 0 && (known[0].owner != h.Owner || known[0].invoke > r.At), len(known) == 0 && !s.wanted(r, h, o.asked[h.Owner]):
			return fmt.Sprintf("token %d, a grant that nobody had by then", h.Token)
		case len(known) > 0 && known[0].mode != r.Mode && !s.befell(known[0].ret, r.At, s.hushed): // it read half of that before
			return fmt.Sprintf("as held%v, by %v", r.Mode, known[0])
		}
	}
	return ""
}

// wanted reports whether a grant that was never returned may have been made by the time it was told of.
func (s *story) wanted(r *Record, h Holder, asked []*call) bool {
	for _, c := range asked {
		if c.invoke.At > r.At {
			break
		}
		if c.invoke.Mode == r.Mode && (!c.granted() || c.ret.Token > h.Token || s.disturbed(c)) {
			return true
		}
	}
	return false
}

// checkLast demands that an observer that is there when all is quiet was told that nobody holds the key.
func (s *story) checkLast(c *call, f *findings) {
	over := int64(never)
	if gone, ok := s.gone[c.invoke.Process]; ok {
		over = gone
	}
	if c.ret != nil {
		over = c.ret.At
	}
	if s.quiet == never || c.invoke.At > s.quiet || over < s.quiet || !s.free(c.invoke.Key) {
		return
	}
	i := len(c.told)
	for i > 0 && c.told[i-1].At > s.quiet {
		i--
	}
	switch {
	case i == 0:
		f.add(s.untold(c, "was told nothing"))
	case c.told[i-1].Token != 0:
		f.add(s.untold(c, fmt.Sprintf("was last told, at %s, of token %d", s.at(c.told[i-1].At), c.told[i-1].Token)))
	}
}

// free reports whether a key was confirmed to be free when all was quiet.
func (s *story) free(key string) bool {
	grants := slices.DeleteFunc(slices.Clone(s.keys[key]), func(g *grant) bool { return g.invoke > s.quiet })
	if len(grants) == 0 {
		return true
	}
	last := grants[len(grants)-1]
	for _, g := range slices.Backward(grants) {
		if last.mode.excludes(g.mode) && g != last {
			break // it was over before the last was granted
		}
		if s.freed(g) > s.quiet {
			return false
		}
	}
	return true
}

func (s *story) untold(c *call, what string) Violation {
	return Violation{
		Rule: RuleObserve, Key: c.invoke.Key, From: s.quiet, To: s.quiet,
		Text: fmt.Sprintf("process %q, observing since %s, %s, though all was quiet at %s and nobody held the key",
			c.invoke.Process, s.at(c.invoke.At), what, s.at(s.quiet)),
	}
}

func (s *story) mistold(r *Record, format string, args ...any) Violation {
	what := "that nobody has it"
	if r.Token != 0 {
		what = fmt.Sprintf("token %d, of %q", r.Token, r.Owner)
		for _, h := range r.Others {
			what += fmt.Sprintf(", and token %d, of %q", h.Token, h.Owner)
		}
		what += r.Mode.String()
	}
	return Violation{
		Rule: RuleObserve, Key: r.Key, From: r.At, To: r.At,
		Text: fmt.Sprintf("process %q was told at %s %s: %s", r.Process, s.at(r.At), what, fmt.Sprintf(format, args...)),
	}
}
