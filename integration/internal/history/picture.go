package history

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// pictureTimeout bounds the search for an order that a picture shows.
const pictureTimeout = 10 * time.Second

// Picture writes an HTML page of the events around a violation: the grants, ends and verifications of its key with the
// longest order that explains them, and beside them each process's holds, pauses and fenced writes, and the faults. Times are
// in order, not to scale.
func Picture(w io.Writer, records []Record, rules Rules, around Violation) error {
	s := newStory(records, rules, &findings{})
	lease := int64(cmp.Or(rules.Lease, time.Second))
	from, to := max(s.start, around.From-3*lease), min(s.end, around.To+3*lease)

	ops, state := s.stepsWithin(around.Key, from, to)
	model := lockModel(state)
	model.DescribeOperation = func(input, _ any) string {
		step := input.(*step)
		return fmt.Sprintf("%s %d", []string{"grant", "end", "verify"}[step.kind], step.token)
	}
	model.DescribeState = func(state any) string { return fmt.Sprintf("%+v", state) }
	_, info := porcupine.CheckOperationsVerbose(model, ops, pictureTimeout)
	info.AddAnnotations([]porcupine.Annotation{{
		Tag: "violation", Start: around.From, End: around.To, Description: string(around.Rule), Details: around.String(), BackgroundColor: "#e0a0a0",
	}})
	for _, a := range s.annotations() {
		if a.Start <= to && a.End >= from {
			info.AddAnnotations([]porcupine.Annotation{a})
		}
	}
	return porcupine.Visualize(model, info, w)
}

// stepsWithin returns the steps of a key in an interval, from the first grant in it, and the lock's state before that. The
// result may be empty: see steps.
func (s *story) stepsWithin(key string, from, to int64) ([]porcupine.Operation, lockState) {
	all, _ := s.steps(s.keys[key])
	clients := map[string]int{}
	var ops []porcupine.Operation
	var state lockState
	for _, op := range all {
		step := op.Input.(*step)
		if op.Call > to || op.Return < from || len(ops) == 0 && step.kind != stepGrant {
			continue
		}
		if len(ops) == 0 {
			state = lockState{last: step.after}
		}
		if _, ok := clients[step.g.process]; !ok {
			clients[step.g.process] = len(clients)
		}
		op.ClientId, op.Return = clients[step.g.process], min(op.Return, max(s.end, op.Call))
		ops = append(ops, op)
	}
	return ops, state
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
	stopped, faults := map[string]*Record{}, map[int]*Record{}
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
		case Begin:
			faults[r.N] = r
		case End:
			if begin := faults[r.N]; begin != nil {
				delete(faults, r.N)
				add("faults", begin.At, r.At, begin.Fault+" "+begin.Target, fmt.Sprintf("fault %d, from %s to %s %s", r.N, s.at(begin.At), s.at(r.At), begin.Note))
			}
		}
	}
	for _, r := range faults { // it ended without a record, or never
		add("faults", r.At, r.At, r.Fault+" "+r.Target, fmt.Sprintf("fault %d, at %s %s", r.N, s.at(r.At), r.Note))
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
