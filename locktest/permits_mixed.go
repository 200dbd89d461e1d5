package locktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
)

var mixedCases = sharing([]testCase{
	{"G20_Schedules", schedules},
	{"G20_RandomSchedules", randomSchedules},
})

const ruleMixed = "a request waits for each earlier one that does not share with it, and a permit for a place among those that do"

// A schedule is a key with requests in several modes. Its steps are words: w (lock, of a writer), r (reader) and 1, 2, 3 (permit of so
// many) are a new request, and -n is the end of the n-th request, by a release or because the waiter gives up.
type schedule struct {
	*env
	key     string
	clients []*Client
	steps   []string
	joined  int
	line    []*entrant // that have not ended, in the order of arrival
}

type entrant struct {
	*waiter
	number int
	mode   string
}

// schedules returns n schedules of the same clients.
func (e *env) schedules(n int) (all []*schedule) {
	clients := []*Client{e.client(), e.client(), e.client()}
	for i := range n {
		all = append(all, &schedule{env: e, key: e.prefix + fmt.Sprint("schedule", i), clients: clients})
	}
	return all
}

// holds reports whether a request was granted and has not ended.
func (r *entrant) holds() bool { return isClosed(r.done) && r.err == nil }

// entitled returns the requests of a line that hold the key by the rule.
func entitled(line []*entrant) (all []*entrant) {
	for i, r := range line {
		room, err := strconv.Atoi(r.mode)
		switch {
		case r.mode == "w":
			room = 1
		case err != nil:
			room = len(line)
		}
		if i < room && !slices.ContainsFunc(line[:i], func(before *entrant) bool { return before.mode != r.mode }) {
			all = append(all, r)
		}
	}
	return all
}

// step performs the next step.
func (s *schedule) step(word string) {
	s.Helper()
	s.steps = append(s.steps, word)
	if number, ok := strings.CutPrefix(word, "-"); ok {
		s.end(slices.IndexFunc(s.line, func(r *entrant) bool { return strconv.Itoa(r.number) == number }))
		return
	}
	var opts []holdfast.Option
	if n, err := strconv.Atoi(word); err == nil {
		opts = append(opts, holdfast.WithLimit(n))
	} else if word == "r" {
		opts = append(opts, holdfast.WithShared())
	}
	w := s.waitKey(s.clients[s.joined%len(s.clients)], s.key, nil, opts...)
	s.joined++
	s.line = append(s.line, &entrant{w, s.joined, word})
}

// end ends the i-th request of the line.
func (s *schedule) end(i int) {
	s.Helper()
	r := s.line[i]
	s.line = slices.Delete(s.line, i, i+1)
	if !isClosed(r.done) {
		r.cancel(nil)
		if !s.closes(r.done, s.engine.Soon) {
			s.broken(ruleAtOnce, "after %q", s.steps)
		}
	}
	if r.err == nil {
		s.release(r.lock)
	}
}

// check insists that the requests hold the key that are entitled to it, and, on an engine without order, that none hold it that
// exclude each other.
func (s *schedule) check() {
	s.Helper()
	holders := func() []*entrant {
		return slices.DeleteFunc(slices.Clone(s.line), func(r *entrant) bool { return !r.holds() })
	}
	want := entitled(s.line)
	if s.engine.Ordered && s.eventually(s.handOver(), func() bool { return slices.Equal(holders(), want) }) {
		s.queued(s.clients[0], s.key, len(s.line)-len(want))
	}
	s.settle()
	got := holders()
	if !s.engine.Ordered {
		want = entitled(got)
	}
	if !slices.Equal(got, want) {
		s.broken(ruleMixed, "after %q, %s hold the key, want %s", s.steps, numbers(got), numbers(want))
	}
}

func numbers(requests []*entrant) string {
	var text []string
	for _, r := range requests {
		text = append(text, fmt.Sprintf("%d (%s)", r.number, r.mode))
	}
	return fmt.Sprint(text)
}

// drain ends each holder, and insists that each waiter becomes one.
func (s *schedule) drain() {
	s.Helper()
	for len(s.line) > 0 {
		i := -1
		if !s.eventually(s.patience(), func() bool { i = slices.IndexFunc(s.line, (*entrant).holds); return i >= 0 }) {
			s.broken("every waiter is served in the end", "after %q, none of %s holds the key", s.steps, numbers(s.line))
		}
		s.step(fmt.Sprint("-", s.line[i].number))
		s.check()
	}
	s.leavesNothing(s.key, s.patience(), ruleNothing)
}

func schedules(e *env) {
	texts := []string{
		"w 3 3 -1",         // a permit with one mate ahead waits for the lock before both
		"w 2 2 2 -2 -1",    // a departure within a full run of permits leaves the lock before it
		"2 w 2 -1",         // a permit with a free place waits for the lock
		"2 2 w 2 -3 -1",    // the lock gives up, and both places are still taken
		"2 w 2 2 -2",       // the lock gives up, and one place is free
		"3 3 3 3 3 -1 -3",  // holders leave out of order
		"2 2 3 2 -1 -2 -3", // two limits exclude each other
		"r w 2 r -2 -3",    // a reader waits behind a permit
		"1 1 2 -2 -1",      // a permit of one is a limit like others
	}
	for i, s := range e.schedules(len(texts)) {
		for word := range strings.FieldsSeq(texts[i]) {
			s.step(word)
			s.check()
		}
		s.drain()
	}
}

func randomSchedules(e *env) {
	const seeds, steps, most = 8, 40, 8
	modes := strings.Fields("w r 1 2 2 2 3 3 3")
	for seed, s := range e.schedules(seeds) {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		for range steps {
			if n := len(s.line); n < 3 || n < most && random.IntN(2) == 0 {
				s.step(modes[random.IntN(len(modes))])
			} else if s.step(fmt.Sprint("-", s.line[random.IntN(n)].number)); random.IntN(3) == 0 {
				continue // the next step comes at once
			}
			s.check()
		}
		s.drain()
	}
}
