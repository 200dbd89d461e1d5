package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// pictureTimeout bounds the search for an order that a picture shows.
const pictureTimeout = 10 * time.Second

// A step is one of the machine that checkLinearizable describes.
type step struct {
	kind  string // grant, end or verify
	token uint64
	mode  Mode
}

// lockState is the machine's state.
type lockState struct {
	held []step // the grants that have not ended, in order of their tokens
	top  []step // for each mode, the grant with the highest token so far, in that order
}

// machine is that machine for porcupine.
var machine = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		now, step := state.(lockState), input.(step)
		at := slices.IndexFunc(now.held, step.sameGrant)
		switch step.kind {
		case "grant":
			return now.grants(step)
		case "end":
			if at >= 0 {
				now.held = slices.Delete(slices.Clone(now.held), at, at+1)
			}
		}
		return at >= 0, now
	},
	Equal: func(a, b any) bool {
		return slices.Equal(a.(lockState).held, b.(lockState).held) && slices.Equal(a.(lockState).top, b.(lockState).top)
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprint(input.(step).kind, " ", input.(step).token) },
	DescribeState:     func(state any) string { return state.(lockState).String() },
}

func (s step) sameGrant(other step) bool { return s.token == other.token }

// grants is the step of a grant.
func (now lockState) grants(s step) (bool, lockState) {
	excluded := func(other step) bool { return other.mode.excludes(s.mode) }
	if slices.ContainsFunc(now.held, excluded) || s.mode.Limit > 0 && len(now.held) >= s.mode.Limit ||
		slices.ContainsFunc(now.top, func(top step) bool { return excluded(top) && top.token >= s.token }) {
		return false, now
	}
	byToken := func(a, b step) int { return cmp.Compare(a.token, b.token) }
	now.held = slices.SortedFunc(slices.Values(append(slices.Clone(now.held), s)), byToken)
	now.top = slices.Clone(now.top)
	if i := slices.IndexFunc(now.top, func(top step) bool { return top.mode == s.mode }); i < 0 {
		now.top = append(now.top, s)
	} else if now.top[i].token < s.token {
		now.top[i] = s
	}
	slices.SortFunc(now.top, byToken)
	return true, now
}

// String returns what is held.
func (now lockState) String() string {
	if len(now.held) == 0 {
		return "free"
	}
	words := make([]string, len(now.held))
	for i, s := range now.held {
		words[i] = fmt.Sprint(s.token, s.mode)
	}
	return "held with " + strings.Join(words, "; ")
}

// steps returns the steps of grants, each with its interval.
func (s *story) steps(grants []*grant) []porcupine.Operation {
	var ops []porcupine.Operation
	clients := map[string]int{}
	for _, g := range grants {
		if _, ok := clients[g.process]; !ok {
			clients[g.process] = len(clients)
		}
		add := func(kind string, from, to int64) {
			ops = append(ops, porcupine.Operation{
				ClientId: clients[g.process], Input: step{kind, g.token, g.mode}, Call: from, Return: max(from, min(to, s.end)),
			})
		}
		add("grant", g.invoke, g.ret)
		for _, c := range g.verified {
			add("verify", c.invoke.At, c.ret.At)
		}
		first, last, _ := s.endOf(g)
		add("end", first, last)
	}
	return ops
}

// Picture writes an HTML page of the events around a violation: the grants, ends and verifications of its key with the
// longest order that explains them, and beside them each process's holds, pauses and fenced writes, and the faults. Times are
// in order, not to scale.
func Picture(w io.Writer, records []Record, rules Rules, around Violation) error {
	s := newStory(records, rules, &findings{})
	lease := int64(cmp.Or(rules.Lease, time.Second))
	from, to := max(s.start, around.From-3*lease), min(s.end, around.To+3*lease)
	grants := slices.DeleteFunc(slices.Clone(s.keys[around.Key]), func(g *grant) bool { return g.ret < from || g.invoke > to })
	_, info := porcupine.CheckOperationsVerbose(machine, s.steps(grants), pictureTimeout)
	info.AddAnnotations([]porcupine.Annotation{{
		Tag: "violation", Start: around.From, End: around.To, Description: string(around.Rule), Details: around.String(), BackgroundColor: "#e0a0a0",
	}})
	for _, a := range s.annotations() {
		if a.Start <= to && a.End >= from {
			info.AddAnnotations([]porcupine.Annotation{a})
		}
	}
	return porcupine.Visualize(machine, info, w)
}

// annotations show what processes and faults did, in the whole history.
func (s *story) annotations() []porcupine.Annotation {
	var list []porcupine.Annotation
	add := func(tag string, from, to int64, what, details string) {
		list = append(list, porcupine.Annotation{Tag: tag, Start: from, End: max(from, to), Description: what, Details: details})
	}
	for _, g := range s.grants {
		story := []string{fmt.Sprintf("asked at %s, granted at %s, held from %s to %s", s.at(g.invoke), s.at(g.ret), s.at(g.first), s.at(g.last))}
		if g.ended != never {
			story = append(story, fmt.Sprintf("over at %s: %s", s.at(g.ended), g.endedHow))
		}
		for _, hit := range g.strikes {
			story = append(story, fmt.Sprintf("%s at %s", hit.what, s.at(hit.from)))
		}
		details := strings.Join(story, "; ")
		if g.held {
			add("process "+g.process, g.first, g.last, fmt.Sprintf("%s: token %d", g.key, g.token), details)
		} else {
			add("process "+g.process, g.ret, g.ret, fmt.Sprintf("%s: token %d, not held", g.key, g.token), details)
		}
	}
	stopped := map[string]*Record{}
	for i := range s.records {
		switch r := &s.records[i]; r.What {
		case Started, Killed, Exited:
			add("process "+r.Process, r.At, r.At, string(r.What), s.at(r.At))
		case Stopped:
			stopped[r.Process] = r
		case Resumed:
			if since := stopped[r.Process]; since != nil {
				add("process "+r.Process, since.At, r.At, "stopped", fmt.Sprintf("from %s to %s", s.at(since.At), s.at(r.At)))
			}
		}
	}
	for n, f := range s.faults {
		r, till, when := f.begin, f.till, "from "+s.at(f.begin.At)+" to "+s.at(f.till)
		if till == never {
			till, when = r.At, "at "+s.at(r.At)
		}
		add("faults", r.At, till, r.Fault+" "+r.Target, fmt.Sprintf("fault %d, %s %s", n, when, r.Note))
	}
	for _, w := range s.writes {
		if w.Fenced {
			outcome := "refused"
			if w.Accepted {
				outcome = "accepted"
			}
			add("process "+w.Process, w.At, w.At, fmt.Sprintf("%s: write with token %d, %s", w.Key, w.Token, outcome), s.at(w.At))
		}
	}
	return list
}
