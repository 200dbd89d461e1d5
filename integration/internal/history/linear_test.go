package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// random is a history of a few grants at random times, which may or may not be possible. Their modes are some of those given.
func random(rng *rand.Rand, modes ...Mode) *script {
	s := &script{}
	until := int64(30 + rng.IntN(60))
	time := func(from int64) int64 { return from + rng.Int64N(max(2, until/3)) }
	for i := range 2 + rng.IntN(4) {
		process, token := fmt.Sprintf("%d.1", i+1), uint64(i+1)
		begin := rng.Int64N(until)
		granted := time(begin)
		s.acquire(process, token, begin, granted).mode(modes[rng.IntN(len(modes))], token)
		at := granted
		if rng.IntN(4) > 0 {
			s.held(process, token, granted)
		}
		for range rng.IntN(3) {
			asked := granted + rng.Int64N(20)
			at = max(at, time(asked))
			s.verify(process, token, asked, at)
		}
		switch rng.IntN(4) {
		case 0:
			s.call(process, Release, token, at, time(at), Pending)
		case 1, 2:
			s.release(process, token, at, time(at))
		}
		if rng.IntN(4) == 0 {
			broken := begin + rng.Int64N(until)
			s.breaks(token, broken, time(broken), []string{OK, GaveUp}[rng.IntN(2)])
		}
	}
	return s
}

// TestLinearizable guards that the verdict on random histories is that of a search through all orders. With permits, a
// little that is wrong may be missed: each is looked at beside those that were certainly held, and not all at once.
func TestLinearizable(t *testing.T) {
	for name, modes := range map[string][]Mode{
		"locks":               {{}},
		"readers and writers": {{}, {Shared: true}, {Shared: true}},
		"permits":             {{Shared: true, Limit: 2}},
		"all":                 {{}, {Shared: true}, {Shared: true, Limit: 1}, {Shared: true, Limit: 2}},
	} {
		verdicts := map[bool]int{}
		missed := 0
		for seed := range uint64(2000) {
			s := newStory(random(rand.New(rand.NewPCG(seed, 3)), modes...).records, scriptRules, &findings{})
			grants := s.keys["k"]
			want := porcupine.CheckOperations(machine, s.steps(grants))
			for _, g := range grants {
				first, last, _ := s.endOf(g)
				want = want && first <= last // which no interval shows
			}
			switch v := s.unordered(grants); {
			case v == nil && !want && slices.ContainsFunc(modes, func(m Mode) bool { return m.Limit > 0 }):
				missed++
			case (v == nil) != want:
				t.Fatalf("%s, seed %d: linearizable: %v, want %v: %v", name, seed, v == nil, want, v)
			}
			verdicts[want]++
		}
		if verdicts[true] < 100 || verdicts[false] < 100 || missed > verdicts[false]/100 {
			t.Errorf("%s: linearizable or not: %v, %d missed; too few of one kind to tell", name, verdicts, missed)
		}
	}
}

// TestLongHistory guards that a long run with open ends everywhere is decided in time: 100,000 steps of one key, of holders who
// all wait at the same time, half of whom are killed. The bound is for a machine that does much else; it takes a second or two.
func TestLongHistory(t *testing.T) {
	s := &script{}
	const grants, waiters = 10_000, 30
	for i := range int64(grants) {
		process, token := fmt.Sprintf("%d.1", i), uint64(i+1)
		at := 10 * i
		s.acquire(process, token, max(0, at-10*waiters), at+3)
		s.held(process, token, at+4, at+6)
		if i%2 == 0 {
			s.killed(process, at+7)
		} else {
			s.release(process, token, at+7, at+15)
		}
		if i%4 < 2 {
			s.verify(process, token, at+4, at+6)
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(s.records), func(i, j int) { s.records[i], s.records[j] = s.records[j], s.records[i] })
	began := time.Now()
	found := Check(s.records, Rules{Lease: time.Second})
	t.Logf("%d records in %v", len(s.records), time.Since(began))
	for _, v := range found {
		t.Error(v)
	}
	// And what is wrong in the midst of it is found: somebody was told of a grant that the next one's had ended.
	s.verify(fmt.Sprintf("%d.1", grants/2), grants/2+1, 10*(grants/2)+14, 10*(grants/2)+16)
	s.remove(of(Killed, fmt.Sprintf("%d.1", grants/2), 0))
	found = Check(s.records, Rules{Lease: time.Second})
	if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == RuleLinearizable }) {
		t.Errorf("found %v, want it not linearizable", found)
	}
}
