package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// never is later than any time.
const never = math.MaxInt64

// A story is a history put together: calls with their returns, grants with everything that happened to them.
type story struct {
	rules      Rules
	records    []Record // in the order of time
	start, end int64    // the first record and the last
	calls      []*call  // in the order of their first records
	grants     map[grantID]*grant
	keys       map[string][]*grant // in order of their tokens
	writes     []*Record           // of the fenced registers
	gone       map[string]int64    // when processes were killed or had exited
	calm       int64               // never, if there is no such record
	quiet      int64               // the same
	jumps      map[string][]*call  // of the wall clocks of processes
	closes     map[string]*call    // of the clients of processes
	stopped    map[string][]period // when processes were
	faults     map[int]*fault      // by the number that their records have

	byID    map[callID]*call
	byOwner map[ownedKey][]*grant // in order of their tokens
}

type callID struct {
	process string
	op      int64
}

// A call has an invoke, and perhaps a return.
type call struct {
	invoke, ret *Record
	told        []*Record // of an observation
}

func (c *call) outcome() string {
	if c.ret == nil {
		return ""
	}
	return c.ret.Outcome
}

type ownedKey struct{ key, owner string }

// granted reports whether a call was granted a lock. Every grant has a token.
func (c *call) granted() bool {
	return c.invoke != nil && c.invoke.acquires() && c.outcome() == OK && c.ret.Token != 0
}

// grant identifies the grant that a record is about.
func (r *Record) grant() grantID { return grantID{r.Process, r.Key, r.Token} }

func (r *Record) acquires() bool { return r.Call == Acquire || r.Call == Try }

func newStory(records []Record, rules Rules, f *findings) *story {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	s := &story{
		rules: rules, records: records,
		calm: never, quiet: never,
		grants: map[grantID]*grant{}, keys: map[string][]*grant{}, byOwner: map[ownedKey][]*grant{},
		gone: map[string]int64{}, jumps: map[string][]*call{}, faults: map[int]*fault{},
		closes: map[string]*call{}, stopped: map[string][]period{},
		byID: make(map[callID]*call, len(records)/8),
	}
	for i := range records {
		s.add(&records[i], f)
	}
	if len(records) > 0 {
		s.start, s.end = records[0].At, records[len(records)-1].At
	}
	s.addGrants(f)
	for i := range records {
		s.addLook(&records[i], f)
	}
	s.addCalls(f)
	return s
}

// add processes what depends on no other record.
func (s *story) add(r *Record, f *findings) {
	switch r.What {
	case Invoke, Return:
		id := callID{r.Process, r.Op}
		c := s.byID[id]
		if c == nil {
			c = &call{}
			s.byID[id] = c
			s.calls = append(s.calls, c)
		}
		side := &c.invoke
		if r.What == Return {
			side = &c.ret
		}
		if *side != nil {
			f.add(s.malformed(r, "operation %d has two records of %s", r.Op, r.What))
			return
		}
		*side = r
	case Wrote:
		s.writes = append(s.writes, r)
	case Killed, Exited:
		s.gone[r.Process] = r.At
	case Stopped:
		s.stopped[r.Process] = append(s.stopped[r.Process], period{r.At, never})
	case Resumed:
		if all := s.stopped[r.Process]; len(all) > 0 {
			all[len(all)-1].till = r.At
		}
	case Begin:
		s.faults[r.N] = &fault{r, never}
	case End:
		if f := s.faults[r.N]; f != nil {
			f.till = r.At
		}
	case Calm:
		if s.calm != never {
			f.add(s.malformed(r, "a second record of calm"))
		}
		s.calm = min(s.calm, r.At)
	case Quiet:
		s.quiet = min(s.quiet, r.At)
	}
}

func (s *story) addGrants(f *findings) {
	for _, c := range s.calls {
		if !c.granted() {
			continue
		}
		g := &grant{
			grantID: grantID{c.ret.Process, c.invoke.Key, c.ret.Token},
			owner:   cmp.Or(c.ret.Owner, c.invoke.Owner),
			mode:    c.invoke.Mode,
			invoke:  c.invoke.At, ret: c.ret.At, ttl: c.invoke.TTL, all: c.invoke.All,
			ended: never,
		}
		if other := s.grants[g.grantID]; other != nil {
			f.add(s.twice(other, g))
			continue
		}
		s.grants[g.grantID] = g
		s.keys[g.key] = append(s.keys[g.key], g)
	}
	for key, grants := range s.keys {
		slices.SortFunc(grants, func(a, b *grant) int {
			return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.invoke, b.invoke), cmp.Compare(a.process, b.process))
		})
		for _, g := range grants {
			s.byOwner[ownedKey{key, g.owner}] = append(s.byOwner[ownedKey{key, g.owner}], g)
		}
	}
}

// addLook processes a look of a holder at its lock, and the states that observers were told.
func (s *story) addLook(r *Record, f *findings) {
	if r.What == Told {
		s.addTold(r, f)
	}
	if r.What != Held && r.What != Lost && r.What != Asked {
		return
	}
	g := s.used(r, string(r.What), f)
	switch {
	case g == nil:
	case r.What == Asked:
		g.asked = r
	case r.What == Lost:
		g.lost = r
		g.end(r.At, "it had observed the loss: "+cmp.Or(r.Cause, "no cause"))
	case !g.held:
		g.held, g.first, g.last = true, r.At, r.At
	default:
		g.last = r.At
	}
}

// used returns the grant that its holder looked at or used, or nil if there was none at that time.
func (s *story) used(r *Record, how string, f *findings) *grant {
	g := s.grants[r.grant()]
	switch {
	case g == nil:
		f.add(s.malformed(r, "%s, with token %d, which it was not granted", how, r.Token))
		return nil
	case r.At < g.ret:
		f.add(s.malformed(r, "%s, with token %d, before it was granted at %s", how, r.Token, s.at(g.ret)))
		return nil
	}
	return g
}

// addCalls assigns calls to the grants that they are about.
func (s *story) addCalls(f *findings) {
	for _, c := range s.calls {
		if c.invoke == nil {
			continue
		}
		switch c.invoke.Call {
		case Verify, Release:
			s.addUse(c, f)
		case SetData:
			if g := s.used(c.invoke, SetData, f); g != nil {
				g.data = append(g.data, c)
			}
		case Ask:
			for _, g := range s.withToken(c.invoke.Key, c.invoke.Token) {
				g.asks = append(g.asks, c)
			}
		case Close:
			s.addClose(c)
		case Lead, Resign:
			s.addTerm(c, f)
		}
	}
	for _, c := range s.calls {
		switch {
		case c.invoke == nil:
		case c.invoke.Call == Break:
			s.addBreak(c)
		case c.invoke.Call == Jump:
			s.jumps[c.invoke.Process] = append(s.jumps[c.invoke.Process], c)
		case c.invoke.Reclaim:
			s.addReclaim(c)
		}
	}
	for _, g := range s.grants {
		slices.SortFunc(g.verified, func(a, b *call) int { return cmp.Compare(a.invoke.At, b.invoke.At) })
		slices.SortFunc(g.strikes, func(a, b strike) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.till, b.till))
		})
	}
}

// addUse is for calls of a lock's own methods.
func (s *story) addUse(c *call, f *findings) {
	r := c.invoke
	g := s.used(r, r.Call, f)
	if g == nil {
		return
	}
	if r.Call == Verify {
		switch c.outcome() {
		case OK:
			g.verified = append(g.verified, c)
		case Gone:
			g.end(c.ret.At, "Verify had reported the loss")
		}
		return
	}
	if g.released == nil || r.At < g.released.invoke.At {
		g.released = c
	}
	if c.ret != nil {
		g.end(c.ret.At, "it had been released")
	}
}

// names returns the keys that were granted, in order.
func (s *story) names() []string { return slices.Sorted(maps.Keys(s.keys)) }

// at prints a time as seconds since the start.
func (s *story) at(t int64) string {
	if t == never {
		return "the end"
	}
	return fmt.Sprintf("%.6f s", float64(t-s.start)/1e9)
}

// malformed is a violation about one record.
func (s *story) malformed(r *Record, format string, args ...any) Violation {
	return Violation{
		Rule: RuleHistory, Key: r.Key, From: r.At, To: r.At,
		Text: fmt.Sprintf("process %q, record of %q at %s: %s", r.Process, r.What, s.at(r.At), fmt.Sprintf(format, args...)),
	}
}
