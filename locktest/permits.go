package locktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

var permitCases = sharing([]testCase{
	{"G20_NeverMoreNeverFewer", neverMoreNeverFewer},
	{"G20_AnyHolderLetsTheNextIn", anyHolderLetsTheNextIn},
	{"G20_TryIsExact", tryIsExact},
	{"G20_OtherModesExclude", otherModesExclude},
})

func neverMoreNeverFewer(e *env) {
	e.mix(ruleMost, 2, 9, 5, func(int, int) mode { return "3" })
	e.all3(e.client(), e.client())
}

// all3 insists that all permits of 3 can be had in the end, and gives them back.
func (e *env) all3(clients ...*Client) {
	var locks []*holdfast.Lock
	for i := range 3 {
		locks = append(locks, e.holdWithin(e.patience(), clients[i%len(clients)], e.key, holdfast.WithLimit(3)))
	}
	for _, c := range clients {
		e.isHeld(c, e.key, ruleMost, holdfast.WithLimit(3))
	}
	e.release(locks...)
}

func anyHolderLetsTheNextIn(e *env) {
	clients, waits, probe := e.clients(3), e.client(), e.client()
	for which := range 3 {
		for _, how := range []string{"release", "break", "loss"} {
			if how == "loss" && (e.NeverExpires || which != 1) {
				continue
			}
			locks := e.share("3", clients)
			w := e.wait(waits, holdfast.WithLimit(3)).waits(probe, e.key, 1)
			switch how {
			case "release":
				e.release(locks[which])
			case "break":
				e.noError(probe.Break(e.soon(), e.grantOf(probe, locks[which])), "Break ends the permit that it is given")
			case "loss":
				clients[which].Cut()
			}
			next := w.granted(e.handOver()+e.engine.Lease, fmt.Sprintf("%s (%s of number %d of 3)", ruleNext, how, which+1))
			if locks[which].Err() == nil && how != "break" {
				e.refuted(ruleFirst, "the permit has gone to the next, and its holder believes to have it")
			}
			clients[which].Heal()
			e.release(next)
			for i, lock := range locks {
				if i != which {
					e.isLive(lock, ruleOthers)
					e.release(lock)
				}
			}
			e.brokenIf(!e.closes(locks[which].Done(), e.engine.Notice), "a permit that was broken ends", "it has not")
			e.leavesNothing(e.key, e.patience(), ruleNothing)
		}
	}
}

// tryIsExact has more try than there are permits, all at once.
func tryIsExact(e *env) {
	const n, tries = 3, 8
	clients := []*Client{e.client(), e.client()}
	for range 4 {
		locks := make([]*holdfast.Lock, tries)
		var got atomic.Int32
		var wg sync.WaitGroup
		for i := range tries {
			wg.Go(func() {
				lock, err := clients[i%len(clients)].TryAcquire(e.soon(), e.key, holdfast.WithLimit(n))
				switch {
				case err == nil:
					locks[i] = lock
					got.Add(1)
				case !errors.Is(err, holdfast.ErrHeld):
					e.Errorf("%s: TryAcquire: %v", e.rule, err)
				}
			})
		}
		wg.Wait()
		had := got.Load()
		e.brokenIf(had != n, "a try succeeds if a permit is free, even if others try at the same time, and only then",
			"%d of %d tries got one of %d permits", had, tries, n)
		for _, lock := range locks {
			if lock != nil {
				e.release(lock)
			}
		}
	}
}

// otherModesExclude tries each mode while each mode is held.
func otherModesExclude(e *env) {
	a, b := e.client(), e.client()
	for _, have := range allModes {
		lock := e.hold(a, have.option())
		for _, want := range allModes {
			if want.mayHold(have) {
				e.release(e.takes(b, e.key, ruleFewer, want.option()))
				continue
			}
			held := e.isHeld(b, e.key, ruleModes, want.option()).Holder
			got := modeOf(held.Shared, held.Limit)
			e.brokenIf(got != have, "a HeldError has the mode of the holders", "a try of %s beside %s was told of %s", want, have, got)
		}
		e.isLive(lock, "a refused try changes nothing")
		e.release(lock)
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

var mixedCases = sharing([]testCase{
	{"G20_Schedules", schedules},
	{"G20_RandomSchedules", randomSchedules},
})

// A schedule is a key with requests in several modes. Its steps are words: a mode is a new request, and -n is the end of the n-th request,
// by a release or because the waiter gives up.
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
	mode
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
	var ahead []mode
	for _, r := range line {
		if r.mayHold(ahead...) {
			all = append(all, r)
		}
		ahead = append(ahead, r.mode)
	}
	return all
}

// step performs the next step.
func (s *schedule) step(word string) {
	s.steps = append(s.steps, word)
	if number, ok := strings.CutPrefix(word, "-"); ok {
		s.end(slices.IndexFunc(s.line, func(r *entrant) bool { return strconv.Itoa(r.number) == number }))
		return
	}
	w := s.waitKey(s.clients[s.joined%len(s.clients)], s.key, nil, mode(word).option())
	s.joined++
	s.line = append(s.line, &entrant{w, s.joined, mode(word)})
}

// end ends the i-th request of the line.
func (s *schedule) end(i int) {
	r := s.line[i]
	s.line = slices.Delete(s.line, i, i+1)
	if !isClosed(r.done) {
		r.cancel(nil)
		s.brokenIf(!s.closes(r.done, s.engine.Soon), ruleAtOnce, "after %q", s.steps)
	}
	if r.err == nil {
		s.release(r.lock)
	}
}

// check insists that the requests hold the key that are entitled to it, and that the queue has the others. On an engine without order
// it insists that no requests hold the key that exclude each other.
func (s *schedule) check() {
	holders := func() []*entrant {
		return slices.DeleteFunc(slices.Clone(s.line), func(r *entrant) bool { return !r.holds() })
	}
	want := entitled(s.line)
	if s.Ordered && s.eventually(s.handOver(), func() bool { return slices.Equal(holders(), want) }) {
		s.queued(s.clients[0], s.key, len(s.line)-len(want))
		info, err := s.clients[0].Inspect(s.soon(), s.key)
		for i, w := range info.Queue {
			got := modeOf(w.Shared, w.Limit)
			s.brokenIf(err != nil || got != s.line[len(want)+i].mode,
				"Inspect gives the mode that each waiter wants", "after %q, number %d: %s, %v", s.steps, i+1, got, err)
		}
	}
	s.settle()
	got := holders()
	if !s.Ordered {
		want = entitled(got)
	}
	s.brokenIf(!slices.Equal(got, want), ruleModes, "after %q, %s hold the key, want %s", s.steps, numbers(got), numbers(want))
	for _, r := range got {
		s.isLive(r.lock, ruleOthers)
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
	for len(s.line) > 0 {
		i := -1
		if !s.eventually(s.patience(), func() bool { i = slices.IndexFunc(s.line, (*entrant).holds); return i >= 0 }) {
			s.broken(ruleServed, "after %q, none of %s holds the key", s.steps, numbers(s.line))
		}
		s.step(fmt.Sprint("-", s.line[i].number))
		s.check()
	}
	s.leavesNothing(s.key, s.patience(), ruleNothing)
}

// play performs schedules.
func (e *env) play(texts ...string) {
	for i, s := range e.schedules(len(texts)) {
		for word := range strings.FieldsSeq(texts[i]) {
			s.step(word)
			s.check()
		}
		s.drain()
	}
}

func schedules(e *env) {
	e.play(
		"w 3 3 -1",                // a permit with one mate ahead waits for the lock before both
		"w 2 2 2 -2 -1",           // a departure within a full run of permits leaves the lock before it
		"2 w 2 -1",                // a permit with a free place waits for the lock
		"2 2 w 2 -3 -1",           // the lock gives up, and both places are still taken
		"2 w 2 2 -2",              // the lock gives up, and one place is free
		"3 3 3 3 3 -1 -3",         // holders leave out of order
		"2 2 3 2 -1 -2 -3",        // two limits exclude each other
		"r w 2 r -2 -3",           // a reader waits behind a permit
		"1 1 2 -2 -1",             // a permit of one is a limit like others
		"w 2 2 2 3 r 1 w 2 2 3 3", // each mode waits for each other
		"w 2 w 2 r 2 3 3 3 3 r r w r -5 -9 -13 -1 -3 -6 -2 -4 -11", // waiters give up at once, and as the first that waits
		"w 3 2 3 w 3 3 r 2 2 -3 -1 -5 -2 -8",                       // waiters give up before permits
	)
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
