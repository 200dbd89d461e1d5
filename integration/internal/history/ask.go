package history

import (
	"fmt"
	"slices"
)

// checkAsks demands that a holder hears of it if somebody asks for its lock, and only then. Within a lease, in which nothing is
// wrong, it has heard of it: on DynamoDB that takes a heartbeat.
func (s *story) checkAsks(f *findings) {
	lease := int64(s.rules.Lease)
	for _, key := range s.names() {
		for _, g := range s.keys[key] {
			if g.asked != nil && !slices.ContainsFunc(g.asks, func(c *call) bool { return c.invoke.At <= g.asked.At }) {
				f.add(s.unasked(g, g.asked.At, "was told at %s that somebody asks for it, and nobody had", s.at(g.asked.At)))
			}
			for _, c := range g.asks {
				if c.outcome() != OK || g.all { // who has several looks at one after the other
					continue
				}
				till := max(c.ret.At, g.ret) + lease
				if s.rules.Steady && g.held && g.last >= till && (g.asked == nil || g.asked.At > till) && !s.disturbedSince(c.invoke.At, till) {
					f.add(s.unasked(g, c.ret.At, "was asked for at %s, and it was not told within a lease", s.at(c.ret.At)))
					break
				}
			}
		}
	}
}

func (s *story) unasked(g *grant, at int64, format string, args ...any) Violation {
	return Violation{
		Rule: RuleAsk, Key: g.key, From: g.invoke, To: at,
		Text: fmt.Sprintf("the lock of %v, %s", g, fmt.Sprintf(format, args...)),
	}
}

// checkNamed demands that who is named as the holder of a key, when a call is refused or gives up, was that, or had been a moment
// before. A try that is refused is exact.
func (s *story) checkNamed(f *findings) {
	keys := map[string]*observed{}
	for _, c := range s.calls {
		if c.invoke == nil || c.ret == nil || c.ret.Named == nil {
			continue
		}
		key := c.invoke.Key
		if keys[key] == nil {
			keys[key] = s.observed(key)
		}
		if wrong := s.misnamed(c, keys[key]); wrong != "" {
			f.add(Violation{
				Rule: RuleNamed, Key: key, From: c.invoke.At, To: c.ret.At,
				Text: fmt.Sprintf("process %q: %s, invoked at %s, was told at %s that %q has it, with token %d%v: %s",
					c.invoke.Process, c.invoke.Call, s.at(c.invoke.At), s.at(c.ret.At), c.ret.Named.Owner, c.ret.Named.Token, c.ret.Mode, wrong),
			})
		}
	}
}

// misnamed says what is wrong with the holder that a call names.
func (s *story) misnamed(c *call, o *observed) string {
	told := &Record{Key: c.invoke.Key, At: c.ret.At, Token: c.ret.Named.Token, Owner: c.ret.Named.Owner, Mode: c.ret.Mode}
	if wrong := s.unmade(told, o); wrong != "" {
		return wrong
	}
	late := int64(s.rules.Lease) / 2
	exact := c.invoke.Call == Try && c.outcome() == Refused
	before := func(at int64) bool { // the call could have known of it
		return exact && at < c.invoke.At || s.rules.Steady && at < c.invoke.At-late && !s.disturbedSince(at, c.ret.At)
	}
	for _, g := range s.withToken(told.Key, told.Token) {
		switch freed := s.freed(g); {
		case before(freed):
			return fmt.Sprintf("its release had been confirmed at %s", s.at(freed))
		case s.rules.Steady && c.ret.At < g.ret-late && !g.all && !s.disturbedSince(c.ret.At-8*late, g.ret): // its client had not heard of it
			return fmt.Sprintf("it was granted at %s", s.at(g.ret))
		}
	}
	for _, h := range s.keys[told.Key] {
		if told.Token > 0 && h.token > told.Token && h.mode.excludes(told.Mode) && before(h.ret) {
			return fmt.Sprintf("%v, had been granted it by then", h)
		}
	}
	return ""
}
