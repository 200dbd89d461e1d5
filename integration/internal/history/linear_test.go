package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// plain is the machine without any of what makes the search short: each interval as it was recorded, each grant with any token
// above the highest.
func (s *story) plain(grants []*grant) (porcupine.Model, []porcupine.Operation) {
	var ops []porcupine.Operation
	for _, g := range grants {
		first, last, _ := s.endOf(g)
		if first > last {
			return porcupine.Model{}, nil
		}
		ops = append(ops,
			porcupine.Operation{Input: &step{kind: stepGrant, token: g.token}, Call: g.invoke, Return: g.ret},
			porcupine.Operation{Input: &step{kind: stepEnd, token: g.token}, Call: first, Return: last})
		for _, c := range g.verified {
			ops = append(ops, porcupine.Operation{Input: &step{kind: stepVerify, token: g.token}, Call: c.invoke.At, Return: c.ret.At})
		}
	}
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			now, step := state.(lockState), input.(*step)
			if step.kind == stepGrant {
				return !now.held && step.token > now.last, lockState{last: step.token, held: true}
			}
			next, ok := now.take(step)
			return ok, next
		},
	}, ops
}

// random is a history of a few grants at random times, which may or may not be possible.
func random(rng *rand.Rand) *script {
	s := &script{}
	until := int64(30 + rng.IntN(60))
	time := func(from int64) int64 { return from + rng.Int64N(max(2, until/3)) }
	for i := range 2 + rng.IntN(4) {
		process, token := fmt.Sprintf("%d.1", i+1), uint64(i+1)
		begin := rng.Int64N(until)
		granted := time(begin)
		s.acquire(process, token, begin, granted)
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

// TestNarrowedSearchIsExact guards that the intervals, the order and the cuts that make the search short change no verdict.
func TestNarrowedSearchIsExact(t *testing.T) {
	verdicts := map[bool]int{}
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := newStory(random(rng).records, scriptRules, &findings{})
		grants := s.keys["k"]
		model, ops := s.plain(grants)
		want := len(ops) > 0 && porcupine.CheckOperations(model, ops)
		for _, size := range []int{1, segment} {
			steps, v := s.steps(grants)
			if v == nil {
				v = s.solve("k", steps, size, time.Minute)
			}
			if got := v == nil; got != want {
				t.Fatalf("seed %d, pieces of %d steps: linearizable: %v, want %v: %v", seed, size, got, want, v)
			}
		}
		verdicts[want]++
	}
	if verdicts[true] < 400 || verdicts[false] < 400 {
		t.Errorf("linearizable or not: %v; too few of one kind to tell", verdicts)
	}
}

// TestUndecided guards that a search that ran out of time acquits nobody.
func TestUndecided(t *testing.T) {
	// Many verifications of one grant at the same time, and one that is wrong: as many orders as there are subsets.
	s := begin()
	for range 40 {
		s.verify("1.1", 1, 62, 99)
	}
	s.verify("1.1", 1, 104, 106)
	st := newStory(s.next().calm().records, scriptRules, &findings{})
	ops, v := st.steps(st.keys["k"])
	if v != nil {
		t.Fatal(v)
	}
	v = st.solve("k", ops, segment, 20*time.Millisecond)
	if v == nil || v.Rule != RuleUndecided {
		t.Errorf("got %v, want it undecided", v)
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
