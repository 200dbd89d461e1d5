package history

import "fmt"

// addTerm is for the calls of a term, whose grant is that of the candidacy.
func (s *story) addTerm(c *call, f *findings) {
	g := s.used(c.invoke, c.invoke.Call, f)
	switch {
	case g == nil:
	case c.invoke.Call == Lead && g.led != nil:
		f.add(s.outside(g, g.led.invoke.At, c.invoke.At, "lead was called twice, at %s and at %s", s.at(g.led.invoke.At), s.at(c.invoke.At)))
	case c.invoke.Call == Lead:
		g.led = c
	case c.outcome() == OK:
		g.resigned = append(g.resigned, c)
		g.end(c.ret.At, "it had been resigned")
	}
}

// checkTerms demands that lead runs within its term: from the grant until the key is given back. That terms do not
// overlap is rule exclusion, by the stamps of lead.
func (s *story) checkTerms(f *findings) {
	for _, key := range s.names() {
		for _, g := range s.keys[key] {
			if g.led == nil {
				for _, c := range g.resigned {
					f.add(s.outside(g, c.invoke.At, c.ret.At, "it was resigned, but lead was not called"))
				}
				continue
			}
			s.checkTerm(g, f)
		}
	}
}

func (s *story) checkTerm(g *grant, f *findings) {
	returned, how := int64(never), "lead had not returned"
	if g.led.ret != nil {
		returned, how = g.led.ret.At, "lead returned at "+s.at(g.led.ret.At)
	}
	began := g.led.invoke.At
	if g.held && (g.first < began || g.last > returned) {
		f.add(s.outside(g, began, g.last, "it was held from %s to %s, but lead was called at %s, and %s",
			s.at(g.first), s.at(g.last), s.at(began), how))
	}
	if g.released != nil && g.released.invoke.At < returned {
		f.add(s.outside(g, g.released.invoke.At, g.released.invoke.At, "the key was given back at %s, but %s", s.at(g.released.invoke.At), how))
	}
	if g.lost != nil && g.lost.Cause == "released" {
		f.add(s.outside(g, g.lost.At, g.lost.At, "lead saw at %s that the key had been given back, but %s", s.at(g.lost.At), how))
	}
	for _, c := range g.resigned {
		if c.ret.At < returned {
			f.add(s.outside(g, c.invoke.At, c.ret.At, "its resignation was confirmed at %s, but %s", s.at(c.ret.At), how))
		}
	}
}

func (s *story) outside(g *grant, from, to int64, format string, args ...any) Violation {
	return Violation{
		Rule: RuleTerm, Key: g.key, From: min(from, to), To: max(from, to),
		Text: fmt.Sprintf("term of %v: %s", g, fmt.Sprintf(format, args...)),
	}
}
