package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// checkTurns demands that no request waits for longer than Turn while nothing is in its way and the engine sends events; and, while
// nothing is wrong, for no longer than Prompt.
func (s *story) checkTurns(f *findings) {
	if s.rules.Turn == 0 && s.rules.Prompt == 0 {
		return
	}
	troubled := s.troubled()
	requests := map[string][]*call{}
	for _, c := range s.calls {
		if c.invoke != nil && c.invoke.acquires() {
			requests[c.invoke.Key] = append(requests[c.invoke.Key], c)
		}
	}
	for key, calls := range requests {
		had, left := s.had(key), s.left(key)
		for _, c := range calls {
			if c.invoke.Call != Acquire || c.invoke.Stands || c.invoke.All {
				continue
			}
			w := waiter{c, calls, had, s.waits(c, left)}
			if s.rules.Turn > 0 {
				s.checkTurn(f, &w, w.period, int64(s.rules.Turn))
			}
			if s.rules.Prompt > 0 {
				for _, calm := range without(w.period, troubled) {
					s.checkTurn(f, &w, calm, int64(s.rules.Prompt))
				}
			}
		}
	}
}

// A waiter is a request that waits for a period.
type waiter struct {
	*call
	others []*call  // all requests for its key, itself included
	had    []period // when a request may have the key
	period
}

// waits is when a request waits. A request that was invoked while the engine showed dead holders has a lease more.
func (s *story) waits(c *call, left []period) period {
	p := period{c.invoke.At, s.end}
	if c.ret != nil {
		p.till = c.ret.At
	} else if gone, ok := s.gone[c.invoke.Process]; ok {
		p.till = gone
	}
	if slices.ContainsFunc(left, func(l period) bool { return l.from <= p.from && p.from < l.till }) {
		p.from += int64(s.rules.Lease)
	}
	return p
}

// checkTurn demands that a waiter does not wait for too long within a period while nothing is in its way. Times in which several faults
// hit its requests do not count.
func (s *story) checkTurn(f *findings, w *waiter, within period, most int64) {
	if within.till-within.from <= most {
		return
	}
	inTheWay, r := w.had, w.invoke
	if s.rules.Queued {
		inTheWay = s.ahead(w, within.from+most/2)
	}
	for _, free := range without(within, inTheWay) {
		waited := int64(0)
		for _, p := range without(free, s.beset(r.Process)) {
			waited += p.till - p.from
		}
		if waited > most {
			f.add(Violation{
				Rule: RuleTurn, Key: r.Key, From: free.from, To: free.till,
				Text: fmt.Sprintf("process %q: %s%v, invoked at %s, has waited from %s to %s (%v), while nothing was in its way",
					r.Process, r.Call, r.Mode, s.at(r.At), s.at(free.from), s.at(free.till), time.Duration(free.till-free.from)),
			})
			return
		}
	}
}

// ahead returns when other requests may have been in the way of a waiter in a queue: each earlier request that does not share with it, and
// as many earlier requests that share as can hold the key together. The waiter stands in the queue from lined on.
func (s *story) ahead(w *waiter, lined int64) []period {
	var all, mates []period
	for _, other := range w.others {
		p := period{other.invoke.At, s.leaves(other)}
		// Tokens tell the order, but for requests that may have had the key before their last grant.
		ordered := w.granted() && other.granted() && !other.invoke.All && !other.invoke.Stands
		if !ordered && p.from > lined && other.granted() { // the waiter may have lost its place meanwhile
			p.from = other.ret.At
		}
		switch {
		case other == w.call || p.till <= w.from || p.from >= w.till:
		case ordered && other.ret.Token > w.ret.Token, !ordered && p.from > lined && !other.granted():
		case other.invoke.Mode.excludes(w.invoke.Mode):
			all = append(all, p)
		default:
			mates = append(mates, p)
		}
	}
	all = append(s.hushes(), all...)
	all = append(all, overlaps(mates, w.invoke.Mode.room())...)
	inOrder(all)
	return all
}

// overlaps returns when at least n of some periods overlap.
func overlaps(some []period, n int) (all []period) {
	type change struct{ at, by int64 }
	var changes []change
	for _, p := range some {
		changes = append(changes, change{p.from, 1}, change{p.till, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	count := int64(0)
	for i, c := range changes {
		if count += c.by; count >= int64(n) {
			all = append(all, period{c.at, changes[i+1].at})
		}
	}
	return all
}

// leaves is when the queue has no node of a request any more. A client that gives up deletes its node within a moment. The nodes of a dead
// client end with its session.
func (s *story) leaves(c *call) int64 {
	if c.granted() {
		return s.over(s.grants[grantID{c.ret.Process, c.invoke.Key, c.ret.Token}])
	}
	till, lease := int64(never), int64(s.rules.Lease)
	if c.ret != nil {
		till = c.ret.At + lease/20
		if s.unconfirmed(c.invoke.Process) {
			till = c.ret.At + 2*lease
		}
	}
	if gone, ok := s.gone[c.invoke.Process]; ok && gone <= till {
		till = gone + lease
	}
	return till
}

// troubled is when a fault was under way, or had ended not long before: in the order of time.
func (s *story) troubled() (all []period) {
	for _, fault := range s.faults {
		till, rest := fault.till, s.rules.Recovery
		if kind := fault.begin.Fault; slices.Contains(s.rules.Endured, kind) && !slices.Contains(s.rules.Lasting, kind) {
			rest = s.rules.Relief
		}
		if till != never {
			till += int64(rest)
		}
		all = append(all, period{fault.begin.At, till})
	}
	inOrder(all)
	return all
}

// without returns the parts of a period that are outside of all others, which are in the order of their beginnings.
func without(p period, others []period) (left []period) {
	for _, other := range others {
		if other.from > p.from {
			left = append(left, period{p.from, min(p.till, other.from)})
		}
		if p.from = max(p.from, other.till); p.from >= p.till {
			return left
		}
	}
	return append(left, p)
}

// period is a time between two moments.
type period struct{ from, till int64 }

func inOrder(all []period) {
	slices.SortFunc(all, func(a, b period) int { return cmp.Compare(a.from, b.from) })
}

// had returns when a client may have had a key, or no client could learn that it is free: in the order of their beginnings.
func (s *story) had(key string) (all []period) {
	for _, g := range s.keys[key] {
		all = append(all, period{g.ret, s.over(g)})
	}
	for _, c := range s.calls {
		if c.invoke == nil || c.invoke.Key != key || !c.invoke.acquires() {
			continue
		}
		if c.ret != nil && !c.granted() && s.unconfirmed(c.invoke.Process) { // Close did not give its orphan back
			all = append(all, period{c.ret.At, c.ret.At + 2*int64(s.rules.Lease)})
		}
		if late, ok := s.unattended(c); ok {
			all = append(all, late)
		}
		if c.ret != nil && !c.invoke.All {
			continue
		}
		from, till := c.invoke.At, int64(never)
		gone, ok := s.gone[c.invoke.Process]
		switch {
		case c.granted():
			till = c.ret.At
		case c.ret != nil: // its orphan is given back by then, or ends with its lease
			till = c.ret.At + int64(s.rules.Lease)
		case ok: // it may have been granted before its process was gone
			till = gone + int64(s.rules.Lease)
		}
		if !c.invoke.All {
			from = gone
		}
		if ok || c.invoke.All {
			all = append(all, period{from, till})
		}
	}
	all = append(all, s.hushes()...)
	inOrder(all)
	return all
}

// hushes are when a client may not know of an event. It asks about the events that it may have missed, within a few leases.
func (s *story) hushes() (all []period) {
	for _, fault := range s.faults {
		if s.hushed(fault.begin) {
			all = append(all, period{fault.begin.At, min(fault.till, never-asks*int64(s.rules.Lease)) + asks*int64(s.rules.Lease)})
		}
	}
	return all
}

// asks is for how many leases a waiter may not know that an event was lost: it asks after two, and then leaves the server.
const asks = 4

// unattended is when the engine may show an orphan that no client gives back: a fault held back a request of a call that is over, and its
// process was gone when the request arrived, or soon after.
func (s *story) unattended(c *call) (p period, ok bool) {
	gone, dead := s.gone[c.invoke.Process]
	if !dead || c.ret == nil {
		return period{}, false
	}
	lease := int64(s.rules.Lease)
	for _, f := range s.faults {
		if f.begin.At <= c.ret.At && c.invoke.At <= f.till && f.till != never && f.till+lease >= gone {
			p, ok = period{gone, max(p.till, gone+lease, f.till+lease)}, true
		}
	}
	return p, ok
}

// unconfirmed reports whether the client of a process was closed without confirmation that all its grants ended.
func (s *story) unconfirmed(process string) bool {
	c := s.closes[process]
	return c != nil && c.outcome() != OK
}

// over is when a grant had ended in the engine, or never. A lease ends later there than for its holder, by a lease at most.
func (s *story) over(g *grant) int64 {
	over, lease := int64(never), int64(s.rules.Lease)
	if g.released != nil && g.released.ret != nil {
		over = g.released.ret.At
		if o := g.released.outcome(); o != OK && o != Gone {
			over += lease
		}
	}
	over = min(over, s.freed(g))
	if g.lost != nil {
		over = min(over, g.lost.At+lease)
	}
	if gone, ok := s.gone[g.process]; ok {
		over = min(over, gone+lease)
	}
	return over
}

// left returns when the engine may show dead holders of a key, which a client must watch for a lease: until an exclusive lock was granted
// that was asked for later.
func (s *story) left(key string) (all []period) {
	if !s.rules.Watched {
		return nil
	}
	add := func(from, till int64, replaces func(*grant) bool) {
		for _, g := range s.keys[key] {
			if !g.mode.Shared && replaces(g) {
				till = min(till, g.ret)
			}
		}
		if from < till {
			all = append(all, period{from, till})
		}
	}
	for _, g := range s.keys[key] {
		from := int64(never)
		if gone, ok := s.gone[g.process]; ok {
			from = gone
		}
		if g.lost != nil {
			from = min(from, g.lost.At)
		}
		if r := g.released; r != nil && r.ret != nil {
			from = min(from, r.ret.At)
		}
		add(from, s.freed(g), func(next *grant) bool { return next.token > g.token })
	}
	for _, c := range s.calls {
		if c.invoke == nil || c.invoke.Key != key || !c.invoke.acquires() || c.granted() {
			continue
		}
		from, ok := s.gone[c.invoke.Process]
		if c.ret != nil {
			from, ok = c.ret.At, s.unconfirmed(c.invoke.Process)
		}
		if ok { // its request may be carried out later
			add(from, never, func(next *grant) bool { return next.invoke > from+int64(s.rules.Late) })
		}
	}
	return all
}

// beset returns when more than one fault of single requests of a process was under way: together they may hit each retry of its client.
// Only the faults of DynamoDB's runs name a client so.
func (s *story) beset(process string) (all []period) {
	client, _, _ := strings.Cut(process, ".")
	var hits []period
	for _, f := range s.faults {
		if strings.HasPrefix(f.begin.Target, "client "+client+":") {
			hits = append(hits, period{f.begin.At, f.till})
		}
	}
	inOrder(hits)
	hit := int64(math.MinInt64) // the latest end of the faults before
	for _, p := range hits {
		if till := min(p.till, hit); p.from < till {
			all = append(all, period{p.from, till})
		}
		hit = max(hit, p.till)
	}
	return all
}
