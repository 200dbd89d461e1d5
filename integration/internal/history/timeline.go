package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Timeline draws what happened around a violation, as SVG: a line per process with its holds as bars, one colour per key; the
// parts of them that are excused hatched; above them the faults. A violation that is too short to be seen there is shown a second
// time, magnified. A Violation of which only From and To are set stands for a time that nothing is wrong with, and the zero
// Violation for the whole history.
func Timeline(w io.Writer, records []Record, rules Rules, around Violation) error {
	s := newStory(records, rules, &findings{})
	p := &picture{s: s, v: around, marked: around.Rule != "", colours: map[string]string{}, y: margin}
	keys := s.names()
	if i := slices.Index(keys, around.Key); i > 0 { // its key has the strongest colour, whatever its name
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, around.Key)
	}
	for i, key := range keys {
		p.colours[key] = palette[i%len(palette)]
	}
	lease := int64(cmp.Or(rules.Lease, time.Second))
	from, to := s.start, s.end
	if around.From != 0 || around.To != 0 {
		from, to = max(from, around.From-3*lease), min(to, around.To+3*lease)
	}
	p.head(keys)
	p.panel(from, max(to, from+1), "")
	if span := max(around.To-around.From, int64(20*time.Microsecond)); p.marked && span < (to-from)/50 {
		p.panel(max(s.start, around.From-3*span), min(s.end, around.To+3*span), "The same, magnified")
	}
	return p.canvas.writeTo(w, width, p.y+margin, "Timeline: "+cmp.Or(around.Rule, "history"))
}

// A bar is something that lasts.
type bar struct {
	from, to int64
	lane     int
	label    string // beside it
	hint     string

	key string // of a grant, and of a call for one
	g   *grant // nil, if the call has not come to that
}

// A row is what is shown of one process.
type row struct {
	process      string
	begins, ends int64 // while it ran
	killed       bool
	bars         []bar
	lanes        int
	paused       []bar
	writes       []*Record
}

// rowsOf returns the processes that there was something of in a time, in order of their slots.
func (s *story) rowsOf(from, to int64) []*row {
	rows := map[string]*row{}
	get := func(process string) *row {
		r := rows[process]
		if r == nil {
			r = &row{process: process, begins: from, ends: never}
			rows[process] = r
		}
		return r
	}
	alive, stopped := map[string]bool{}, map[string]int64{}
	for _, r := range s.inOrder(Started, Stopped, Resumed, Killed, Exited) {
		switch r.What {
		case Started:
			if gone, ok := s.gone[r.Process]; r.At <= to && (!ok || gone >= from) {
				get(r.Process).begins = r.At
				alive[r.Process] = true
			}
		case Stopped:
			stopped[r.Process] = r.At
		case Resumed, Killed, Exited:
			s.addPause(get, stopped, r.Process, r.At, from, to)
			if r.What != Resumed && r.At >= from && r.At <= to {
				row := get(r.Process)
				row.ends, row.killed = r.At, r.What == Killed
			}
		}
	}
	for process := range stopped {
		s.addPause(get, stopped, process, s.end, from, to)
	}
	for _, g := range s.grants {
		if g.invoke <= to && g.lastSeen() >= from {
			get(g.process).addGrant(s, g)
		}
	}
	for _, c := range s.calls {
		if c.invoke != nil && c.invoke.At <= to && !c.granted() && s.over(c) >= from {
			get(c.invoke.Process).addCall(s, c)
		}
	}
	for _, w := range s.writes {
		if w.At >= from && w.At <= to && w.Fenced {
			row := get(w.Process)
			row.writes = append(row.writes, w)
		}
	}
	var list []*row
	for _, r := range rows {
		if _, client := s.gone[r.process]; client || alive[r.process] || len(r.bars)+len(r.paused)+len(r.writes) > 0 {
			list = append(list, r)
			r.lanes = pack(r.bars, func(b bar) (from, to int64) { return b.from, b.to })
		}
	}
	slices.SortFunc(list, func(a, b *row) int { return byProcess(a.process, b.process) })
	return list
}

func (s *story) addPause(get func(string) *row, stopped map[string]int64, process string, at, from, to int64) {
	since, ok := stopped[process]
	delete(stopped, process)
	if ok && since <= to && at >= from {
		row := get(process)
		row.paused = append(row.paused, bar{
			from: since, to: at, hint: fmt.Sprintf("%s stopped from %s to %s", process, s.at(since), s.at(at)),
		})
	}
}

// over is when a call had returned, or its process had ended, or the history had.
func (s *story) over(c *call) int64 {
	if c.ret != nil {
		return c.ret.At
	}
	if gone, ok := s.gone[c.invoke.Process]; ok {
		return gone
	}
	return s.end
}

// addCall adds what a process waited for in vain.
func (r *row) addCall(s *story, c *call) {
	if c.invoke.Call != Acquire && c.invoke.Call != Try {
		return
	}
	r.bars = append(r.bars, bar{
		from: c.invoke.At, to: s.over(c), key: c.invoke.Key,
		hint: fmt.Sprintf("%s, key %q: %s from %s to %s, %s", c.invoke.Process, c.invoke.Key, c.invoke.Call,
			s.at(c.invoke.At), s.at(s.over(c)), cmp.Or(c.outcome(), NoReturn)),
	})
}

func (r *row) addGrant(s *story, g *grant) {
	b := bar{from: g.invoke, to: g.lastSeen(), key: g.key, g: g, label: fmt.Sprint(g.token)}
	b.hint = fmt.Sprintf("%s, key %q, token %d: asked at %s, granted at %s", g.process, g.key, g.token, s.at(g.invoke), s.at(g.ret))
	if g.held {
		b.hint += fmt.Sprintf(", held from %s to %s", s.at(g.first), s.at(g.last))
	}
	if g.ended != never {
		b.hint += fmt.Sprintf("; over at %s: %s", s.at(g.ended), g.endedHow)
	}
	for _, hit := range g.strikes {
		b.hint += fmt.Sprintf("; %s at %s", hit.what, s.at(hit.from))
	}
	r.bars = append(r.bars, b)
}

// faultsOf returns the faults of a time.
func (s *story) faultsOf(from, to int64) []bar {
	var list []bar
	open := map[int]*Record{}
	add := func(r *Record, end int64) {
		if r.At > to || end < from {
			return
		}
		label := r.Fault
		if r.Target != "" {
			label += ": " + r.Target
		}
		list = append(list, bar{
			from: r.At, to: end, label: label,
			hint: fmt.Sprintf("fault %d, %s, from %s to %s %s", r.N, label, s.at(r.At), s.at(end), r.Note),
		})
	}
	for _, r := range s.inOrder(Begin, End) {
		if begin := open[r.N]; r.What == End && begin != nil {
			add(begin, r.At)
			delete(open, r.N)
		} else if r.What == Begin {
			open[r.N] = r
		}
	}
	for _, r := range open { // it was over by itself, or never
		add(r, r.At)
	}
	slices.SortFunc(list, func(a, b bar) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.label, b.label)) })
	return list
}

// inOrder returns the records of some kinds, in order of time.
func (s *story) inOrder(kinds ...What) []*Record {
	var list []*Record
	for i := range s.records {
		if r := &s.records[i]; slices.Contains(kinds, r.What) {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b *Record) int { return cmp.Compare(a.At, b.At) })
	return list
}

// pack gives bars lanes, such that none runs into another of its lane, and returns how many that takes. room is how much a bar
// takes up.
func pack(bars []bar, room func(bar) (from, to int64)) int {
	slices.SortFunc(bars, func(a, b bar) int {
		from, _ := room(a)
		other, _ := room(b)
		return cmp.Or(cmp.Compare(from, other), cmp.Compare(a.to, b.to), cmp.Compare(a.hint, b.hint))
	})
	var ends []int64
	for i := range bars {
		from, to := room(bars[i])
		lane := slices.IndexFunc(ends, func(end int64) bool { return end <= from })
		if lane < 0 {
			lane, ends = len(ends), append(ends, 0)
		}
		bars[i].lane, ends[lane] = lane, to
	}
	return max(1, len(ends))
}

// byProcess orders "2.1" before "10.1", and names before both.
func byProcess(a, b string) int {
	one, two := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(one), len(two)) {
		if c := cmp.Or(cmp.Compare(len(one[i]), len(two[i])), cmp.Compare(one[i], two[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(one), len(two))
}
