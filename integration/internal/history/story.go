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
	records    []Record
	start, end int64   // the first record and the last
	calls      []*call // in the order of their first records
	grants     map[grantID]*grant
	keys       map[string][]*grant // in order of their tokens
	writes     []*Record           // of both registers, in the order in which these answered
	gone       map[string]int64    // when processes were killed or had exited
	killed     map[string]bool
	calm       int64              // never, if there is no such record
	jumps      map[string][]*call // of the wall clocks of processes

	byID    map[callID]*call
	byOwner map[ownedKey][]*grant // in order of their tokens
}

type callID struct {
	process string
	op      int64
}

// A call has an invoke, and perhaps a return.
type call struct{ invoke, ret *Record }

func (c *call) outcome() string {
	if c.ret == nil {
		return ""
	}
	return c.ret.Outcome
}

type ownedKey struct{ key, owner string }

// granted reports whether a call was granted a lock. Every grant has a token.
func (c *call) granted() bool {
	return c.invoke != nil && (c.invoke.Call == Acquire || c.invoke.Call == Try) && c.outcome() == OK && c.ret.Token != 0
}

type grantID struct {
	process, key string
	token        uint64
}

// A grant is the result of a successful acquire or try.
type grant struct {
	grantID
	owner       string
	invoke, ret int64 // of the call
	ttl         int64 // that it was asked for with

	held        bool  // there is a stamp
	first, last int64 // stamps

	verified []*call // with OK
	released *call   // the first call of release
	ended    int64   // the earliest time at which the holder has observed the end, or never
	endedHow string
	lost     *Record
	strikes  []strike
}

// A strike ends somebody else's grant: a break, or an acquisition that reclaims.
type strike struct {
	from    int64 // it cannot have had an effect before
	till    int64 // nor later than this; never, if that is not known
	sure    bool  // it has had the effect
	reclaim bool
	what    string
}

func newStory(records []Record, rules Rules, f *findings) *story {
	s := &story{
		rules: rules, records: records,
		start: never, end: math.MinInt64, calm: never,
		grants: map[grantID]*grant{}, keys: map[string][]*grant{}, byOwner: map[ownedKey][]*grant{},
		gone: map[string]int64{}, killed: map[string]bool{}, jumps: map[string][]*call{},
		byID: make(map[callID]*call, len(records)/8),
	}
	for i := range records {
		s.add(&records[i], f)
	}
	if len(records) == 0 {
		s.start, s.end = 0, 0
	}
	s.addGrants(f)
	for i := range records {
		s.addLook(&records[i], f)
	}
	slices.SortStableFunc(s.writes, func(a, b *Record) int { return cmp.Compare(a.At, b.At) })
	s.addCalls(f)
	return s
}

// add processes what depends on no other record.
func (s *story) add(r *Record, f *findings) {
	s.start, s.end = min(s.start, r.At), max(s.end, r.At)
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
		s.killed[r.Process] = r.What == Killed
	case Calm:
		if s.calm != never {
			f.add(s.malformed(r, "a second record of calm"))
		}
		s.calm = min(s.calm, r.At)
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
			invoke:  c.invoke.At, ret: c.ret.At, ttl: c.invoke.TTL,
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

// addLook processes what a process saw when it looked at its lock.
func (s *story) addLook(r *Record, f *findings) {
	if r.What != Held && r.What != Lost {
		return
	}
	g := s.grants[grantID{r.Process, r.Key, r.Token}]
	switch {
	case g == nil:
		f.add(s.malformed(r, "%s, with token %d, which it was not granted", r.What, r.Token))
		return
	case r.At < g.ret:
		f.add(s.malformed(r, "%s, with token %d, before it was granted at %s", r.What, r.Token, s.at(g.ret)))
		return
	case r.What == Lost:
		g.lost = r
		g.end(r.At, "it had observed the loss: "+cmp.Or(r.Cause, "no cause"))
	case !g.held:
		g.held, g.first, g.last = true, r.At, r.At
	default:
		g.first, g.last = min(g.first, r.At), max(g.last, r.At)
	}
}

// end notes that the holder knew at a time that its lock had ended.
func (g *grant) end(at int64, how string) {
	if at < g.ended {
		g.ended, g.endedHow = at, how
	}
}

// addCalls assigns calls to the grants that they are about.
func (s *story) addCalls(f *findings) {
	for _, c := range s.calls {
		if c.invoke != nil && (c.invoke.Call == Verify || c.invoke.Call == Release) {
			s.addUse(c, f)
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
	g := s.grants[grantID{r.Process, r.Key, r.Token}]
	switch {
	case g == nil:
		f.add(s.malformed(r, "%s, with token %d, which it was not granted", r.Call, r.Token))
		return
	case r.At < g.ret:
		f.add(s.malformed(r, "%s, with token %d, before it was granted at %s", r.Call, r.Token, s.at(g.ret)))
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

// addBreak notes which grants may have been broken. A call that returns Gone may have sent an earlier request that was
// carried out without a reply. Any outcome but OK leaves open whether the break took effect, and when.
func (s *story) addBreak(c *call) {
	hit := strike{from: c.invoke.At, till: never, what: "broken by " + c.invoke.Process}
	if c.outcome() == OK {
		hit.till, hit.sure = c.ret.At, true
	}
	for _, g := range s.withToken(c.invoke.Key, c.invoke.Token) {
		g.strikes = append(g.strikes, hit)
	}
}

// addReclaim notes which grants an acquisition may have reclaimed: those of the same owner in other processes. Its token is
// greater than theirs, and they had ended when it returned.
func (s *story) addReclaim(c *call) {
	r := c.invoke
	hit := strike{from: r.At, till: never, reclaim: true, what: "reclaimed by " + r.Process}
	owner, granted := r.Owner, uint64(math.MaxUint64)
	switch at, ended := s.gone[r.Process]; {
	case c.outcome() == OK:
		hit.till = c.ret.At
		owner, granted = cmp.Or(c.ret.Owner, owner), c.ret.Token
	case ended:
		hit.till = at + int64(s.rules.Late)
	}
	for _, g := range s.byOwner[ownedKey{r.Key, owner}] {
		if g.token >= granted {
			break
		}
		if g.process != r.Process && g.invoke <= hit.till && hit.from <= g.lastSeen() {
			g.strikes = append(g.strikes, hit)
		}
	}
}

// lastSeen is when the history last shows the holder with its lock, or learning of its end. Later events need no excuse and
// explain nothing.
func (g *grant) lastSeen() int64 {
	seen := g.ret
	if g.held {
		seen = max(seen, g.last)
	}
	if g.released != nil {
		seen = max(seen, g.released.invoke.At)
	}
	if g.lost != nil {
		seen = max(seen, g.lost.At)
	}
	return seen
}

// withToken returns the grants of a key with a token: one, in a correct history.
func (s *story) withToken(key string, token uint64) []*grant {
	grants := s.keys[key]
	i, _ := slices.BinarySearchFunc(grants, token, func(g *grant, t uint64) int { return cmp.Compare(g.token, t) })
	n := i
	for n < len(grants) && grants[n].token == token {
		n++
	}
	return grants[i:n]
}

// after returns the next grant of the key, or nil.
func (s *story) after(g *grant) *grant {
	for _, next := range s.keys[g.key] {
		if next.token > g.token {
			return next
		}
	}
	return nil
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
	v := Violation{Rule: RuleHistory, Key: r.Key, From: r.At, To: r.At}
	if r.Process != "" {
		v.Processes, v.Tokens = []string{r.Process}, []uint64{r.Token}
	}
	v.Text = fmt.Sprintf("process %q, record of %q at %s: %s", r.Process, r.What, s.at(r.At), fmt.Sprintf(format, args...))
	return v
}
