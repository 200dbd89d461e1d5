package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// As a state machine, a lock is free or held with a token, and remembers the highest token so far. Its steps:
//
//	grant(t)   it is free, and t is the next token: it is held with t
//	end(t)     it is held with t: it is free
//	verify(t)  it is held with t, and stays so
//
// The history of a key is linearizable if each step can be given a moment within its interval so that the machine accepts the
// steps in that order.
type step struct {
	kind  stepKind
	token uint64
	after uint64 // of a grant: the token of the grant before it
	g     *grant
	by    *call // of a verification
	why   string
}

type stepKind int

const (
	stepGrant stepKind = iota
	stepEnd
	stepVerify
)

// lockState is the machine's state. A free lock has a last token, too.
type lockState struct {
	last uint64
	held bool
}

func (st lockState) take(s *step) (lockState, bool) {
	switch s.kind {
	case stepGrant:
		return lockState{last: s.token, held: true}, !st.held && st.last == s.after
	case stepEnd:
		return lockState{last: s.token}, st.held && st.last == s.token
	case stepVerify:
		return st, st.held && st.last == s.token
	}
	panic(fmt.Sprintf("history: step of kind %d", s.kind))
}

// solveTimeout bounds the search for one key's order. Nearly all of a healthy history needs no search.
const solveTimeout = time.Minute

// checkLinearizable looks, for each key, for an order of its steps that explains every answer. It skips keys that violate a
// rule about grants: they have no order, and the other rule describes the violation better.
func (s *story) checkLinearizable(f *findings) {
	for _, key := range s.names() {
		if f.dirty[key] {
			continue
		}
		ops, v := s.steps(s.keys[key])
		if v != nil {
			f.add(*v)
			continue
		}
		if v := s.solve(key, ops, segment, solveTimeout); v != nil {
			f.add(*v)
		}
	}
}

// steps returns the steps of a key, from grants in order of their tokens. It narrows each interval to where the machine can
// take the step, which loses no order:
//
//   - The order of grants is that of their tokens, since each needs a higher one than there was. (So grant(t) may as well demand
//     that its predecessor was the last.)
//   - Between a grant and the next the lock must become free. So the end of the first is not later than the return of the second,
//     and the second not earlier than the end of the first can be.
//
// Otherwise an unconfirmed end, such as that of a killed process, would be open for ever, and the search would try each of
// them everywhere. If narrowing empties an interval, there is no order, and steps says why.
func (s *story) steps(grants []*grant) ([]porcupine.Operation, *Violation) {
	var ops []porcupine.Operation
	var before *grant
	var beforeEnd int64
	for i, g := range grants {
		asked := &step{kind: stepGrant, token: g.token, g: g}
		from := g.invoke
		if before != nil {
			asked.after = before.token
			from = max(from, beforeEnd)
		}
		if from > g.ret {
			return nil, s.impossible(before, g, fmt.Sprintf("process %q, token %d, held it until at least %s, and process %q, token %d, was granted it by %s",
				before.process, before.token, s.at(beforeEnd), g.process, g.token, s.at(g.ret)), g.ret, beforeEnd)
		}
		ops = append(ops, porcupine.Operation{Input: asked, Call: from, Return: g.ret})

		first, last, why := s.endOf(g)
		if i+1 < len(grants) {
			last = min(last, grants[i+1].ret)
		}
		if first > last && i+1 < len(grants) && last == grants[i+1].ret {
			next := grants[i+1]
			return nil, s.impossible(g, next, fmt.Sprintf("process %q, token %d, held it until at least %s, and process %q, token %d, was granted it by %s",
				g.process, g.token, s.at(first), next.process, next.token, s.at(next.ret)), last, first)
		}
		if first > last {
			return nil, s.impossible(g, g, fmt.Sprintf("process %q, token %d, held it until at least %s, but it was over by %s: %s",
				g.process, g.token, s.at(first), s.at(last), why), last, first)
		}
		ops = append(ops, porcupine.Operation{Input: &step{kind: stepEnd, token: g.token, g: g, why: why}, Call: first, Return: last})
		for _, c := range g.verified {
			ops = append(ops, porcupine.Operation{
				Input: &step{kind: stepVerify, token: g.token, g: g, by: c},
				Call:  c.invoke.At, Return: c.ret.At,
			})
		}
		before, beforeEnd = g, first
	}
	return ops, nil
}

// endOf is when a grant has ended in the engine: not before first, not after last.
//
// A holder believes in its lock for no longer than the engine does, so the end is not before the last stamp; nor before a
// release that found the lock live. A strike is the exception: it ends the grant without asking the holder, at any time from
// its invoke on. A release or a break that was confirmed has ended it. Everything else (a killed process, a session or TTL
// that ended, a release in the background) ends it at some time, perhaps long after the history.
func (s *story) endOf(g *grant) (first, last int64, why string) {
	first, last, why = g.invoke, never, "nobody knows when"
	if g.held {
		first = g.last
	}
	if g.released != nil {
		switch g.released.outcome() {
		case OK:
			last, why = g.released.ret.At, "it had been released"
			first = max(first, g.released.invoke.At)
		case Pending:
			first = max(first, g.released.invoke.At)
		}
	}
	for _, hit := range g.strikes {
		first = min(first, max(hit.from, g.invoke))
		if hit.sure && hit.till < last {
			last, why = hit.till, "it was "+hit.what
		}
	}
	return first, last, why
}

func (s *story) impossible(a, b *grant, text string, from, to int64) *Violation {
	v := &Violation{
		Rule: RuleLinearizable, Key: a.key, Processes: []string{a.process}, Tokens: []uint64{a.token},
		From: min(from, to), To: max(from, to), Text: text,
	}
	if b != a {
		v.Processes, v.Tokens = append(v.Processes, b.process), append(v.Tokens, b.token)
	}
	return v
}

// segment is roughly how many steps are searched at a time. The memory of a search grows with their square.
const segment = 256

// solve searches for an order of the steps of a key, piece by piece, each of at least size steps. A history may be split at a
// moment that lies in no step's interval: all earlier steps come before all later ones. Every order of the first piece leaves
// the machine in the same state: that after its last grant, free if the piece has the end of that grant.
func (s *story) solve(key string, ops []porcupine.Operation, size int, limit time.Duration) *Violation {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(min(max(a.Call-b.Call, -1), 1)) })
	deadline := time.Now().Add(limit)
	var state lockState
	for len(ops) > 0 {
		n, reach := 0, ops[0].Return
		for n < len(ops) && (n < size || ops[n].Call <= reach) {
			reach = max(reach, ops[n].Return)
			n++
		}
		piece := ops[:n]
		ops = ops[n:]
		model := lockModel(state)
		switch porcupine.CheckOperationsTimeout(model, piece, max(time.Until(deadline), time.Millisecond)) {
		case porcupine.Ok:
			state = settled(state, piece)
		case porcupine.Illegal:
			return s.stuck(key, model, piece)
		default:
			return &Violation{
				Rule: RuleUndecided, Key: key, From: piece[0].Call, To: min(reach, s.end),
				Text: fmt.Sprintf("an order of the %d steps from %s to %s was neither found nor ruled out within %v",
					len(piece), s.at(piece[0].Call), s.at(min(reach, s.end)), limit),
			}
		}
	}
	return nil
}

// settled is the state after a piece, the same for all its orders.
func settled(state lockState, piece []porcupine.Operation) lockState {
	ended := uint64(0)
	for _, op := range piece {
		switch step := op.Input.(*step); step.kind {
		case stepGrant:
			if step.token > state.last {
				state = lockState{last: step.token, held: true}
			}
		case stepEnd:
			ended = max(ended, step.token)
		}
	}
	state.held = state.held && ended < state.last
	return state
}

func lockModel(first lockState) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := state.(lockState).take(input.(*step))
			return ok, next
		},
		Hash: func(state any) uint64 { return state.(lockState).last },
	}
}

// stuck says which step the longest possible order cannot take.
func (s *story) stuck(key string, model porcupine.Model, piece []porcupine.Operation) *Violation {
	_, info := porcupine.CheckOperationsVerbose(model, piece, 0)
	var longest []porcupine.Operation
	for _, orders := range info.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	done := map[*step]bool{}
	for _, op := range longest {
		done[op.Input.(*step)] = true
	}
	var first *porcupine.Operation
	for i := range piece {
		if !done[piece[i].Input.(*step)] && (first == nil || piece[i].Return < first.Return) {
			first = &piece[i]
		}
	}
	step := first.Input.(*step)
	v := &Violation{
		Rule: RuleLinearizable, Key: key, Processes: []string{step.g.process}, Tokens: []uint64{step.token},
		From: first.Call, To: min(first.Return, s.end),
		Text: fmt.Sprintf("no order of the calls explains that %s", s.describe(*first)),
	}
	if n := len(longest); n > 0 {
		v.Text += fmt.Sprintf("; the longest possible order ends with this: %s", s.describe(longest[n-1]))
	}
	return v
}

func (s *story) describe(op porcupine.Operation) string {
	step := op.Input.(*step)
	when := fmt.Sprintf("between %s and %s", s.at(op.Call), s.at(op.Return))
	switch step.kind {
	case stepGrant:
		return fmt.Sprintf("process %q was granted token %d %s", step.g.process, step.token, when)
	case stepEnd:
		return fmt.Sprintf("the grant of token %d, of process %q, ended %s (%s)", step.token, step.g.process, when, step.why)
	default:
		return fmt.Sprintf("process %q verified that token %d is valid %s", step.g.process, step.token, when)
	}
}
