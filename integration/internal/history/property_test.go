package history

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// histories is how many are made. HOLDFAST_HISTORIES makes it more than what shows each
// of the faults a few times.
func histories(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("HOLDFAST_HISTORIES")
	if text == "" {
		return 100
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 100 {
		t.Fatalf("HOLDFAST_HISTORIES=%q: want a number from 100 on", text)
	}
	return n
}

// TestSimulatedHistories guards that nobody is accused falsely: whatever befalls clients that keep to the rules, no violation is
// found; and that the simulator makes all that the rules are about.
func TestSimulatedHistories(t *testing.T) {
	runs := histories(t)
	var all Figures
	struck, hurried := 0, 0
	for seed := range runs {
		records := simulate(seed, 3+int(seed%3), 1+int(seed%2), 1500*time.Millisecond, false)
		found := Check(records, Rules{Lease: scriptRules.Lease, Settle: 2 * time.Second})
		for _, v := range found {
			t.Errorf("seed %d: %v", seed, v)
		}
		if len(found) > 0 {
			return
		}
		f := Count(records)
		all.Holds, all.Refused, all.WentBack, all.Killed, all.Paused = all.Holds+f.Holds, all.Refused+f.Refused, all.WentBack+f.WentBack, all.Killed+f.Killed, all.Paused+f.Paused
		s := newStory(records, scriptRules, &findings{})
		for _, g := range s.grants {
			if next := s.after(g); next != nil && g.held && next.held && g.last >= next.first {
				struck++
			}
			if g.lost != nil && g.lost.Cause == "ErrTTLExpired" && g.lost.At < g.invoke+g.ttl {
				hurried++
			}
		}
	}
	t.Logf("%d histories: %d holds, %d refused writes, %d unfenced writes that went back, %d killed, %d paused, %d excused overlaps, %d TTLs that jumps have ended",
		runs, all.Holds, all.Refused, all.WentBack, all.Killed, all.Paused, struck, hurried)
	if all.Holds == 0 || all.Refused == 0 || all.WentBack == 0 || all.Killed == 0 || all.Paused == 0 || struck == 0 || hurried == 0 {
		t.Error("some of it never happened")
	}
}

// A mutation makes a history wrong, if it finds in it what it needs.
type mutation struct {
	name   string
	rules  []string // one of which must find it
	mutate func(rng *rand.Rand, s *story) ([]Record, bool)
}

// mutations change one thing each, somewhere.
var mutations = []mutation{
	{"held into the next hold", []string{RuleExclusion}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		older, newer, ok := neighbours(rng, s)
		if !ok || len(older.strikes) > 0 || newer.first <= older.last {
			return nil, false
		}
		wrong := append(slices.Clone(s.records), Record{
			At: newer.first + rng.Int64N(newer.last-newer.first+1), What: Held, Process: older.process, Key: older.key, Token: older.token,
		})
		excused := newStory(wrong, s.rules, &findings{}).grants[older.grantID].strikes // by what came after its end
		return wrong, len(excused) == 0
	}},
	{"a lease longer than a break excuses", []string{RuleExclusion}, func(_ *rand.Rand, s *story) ([]Record, bool) {
		for _, key := range s.names() {
			for _, g := range s.keys[key] {
				next := s.after(g)
				if !g.held || len(g.strikes) != 1 || next == nil || !next.held {
					continue
				}
				late := s.believes(g.strikes[0], next.ret) + 1
				if late < max(g.ret, next.ret) {
					continue
				}
				return append(slices.Clone(s.records),
					Record{At: late, What: Held, Process: g.process, Key: key, Token: g.token},
					Record{At: late, What: Held, Process: next.process, Key: key, Token: next.token}), true
			}
		}
		return nil, false
	}},
	{"a token twice", []string{RuleTokens}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		older, newer, ok := neighbours(rng, s)
		return retoken(s, newer, func() uint64 { return older.token }), ok && older.process != newer.process
	}},
	{"a token that falls", []string{RuleTokens}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		older, newer, ok := neighbours(rng, s)
		return retoken(s, newer, func() uint64 { return older.token - 1 }),
			ok && older.ret < newer.invoke && older.token > 1 && len(s.withToken(older.key, older.token-1)) == 0
	}},
	{"a write that the fence should have refused", []string{RuleFence}, changeOne(func(r *Record) bool {
		return r.What == Wrote && r.Fenced && !r.Accepted
	}, func(r *Record) { r.Accepted = true })},
	{"a write that the fence should have accepted", []string{RuleFence}, changeOne(func(r *Record) bool {
		return r.What == Wrote && r.Fenced && r.Accepted
	}, func(r *Record) { r.Accepted = false })},
	{"held after it was lost", []string{RuleEnded}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		r := one(rng, s, func(r *Record) bool { return r.What == Lost })
		if r == nil {
			return nil, false
		}
		return append(slices.Clone(s.records), Record{At: r.At + 1, What: Held, Process: r.Process, Key: r.Key, Token: r.Token}), true
	}},
	{"a TTL that has not passed", []string{RuleCause}, func(_ *rand.Rand, s *story) ([]Record, bool) {
		for _, key := range s.names() {
			for _, g := range s.keys[key] {
				if g.lost == nil || g.lost.Cause != "ErrTTLExpired" || len(s.jumps[g.process]) > 0 {
					continue
				}
				records := slices.Clone(s.records)
				for i := range records {
					if r := &records[i]; r.What == Invoke && r.Process == g.process && r.At == g.invoke {
						r.TTL = g.lost.At - g.invoke + 1
					}
				}
				return records, true
			}
		}
		return nil, false
	}},
	{"a TTL that has passed by a jump of nobody", []string{RuleCause}, func(_ *rand.Rand, s *story) ([]Record, bool) {
		for _, key := range s.names() {
			for _, g := range s.keys[key] {
				if g.lost == nil || g.lost.Cause != "ErrTTLExpired" || g.lost.At >= g.invoke+g.ttl {
					continue
				}
				return slices.DeleteFunc(slices.Clone(s.records), func(r Record) bool {
					return r.Process == g.process && r.Call == Jump
				}), true
			}
		}
		return nil, false
	}},
	{"verified when the next had been granted", []string{RuleLinearizable, RuleEnded}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		older, newer, ok := neighbours(rng, s)
		return append(slices.Clone(s.records),
			Record{At: newer.ret + 1, What: Invoke, Call: Verify, Process: older.process, Key: older.key, Token: older.token, Op: 1 << 40},
			Record{At: newer.ret + 2, What: Return, Call: Verify, Process: older.process, Key: older.key, Token: older.token, Op: 1 << 40, Outcome: OK}), ok
	}},
	{"granted while another has it", []string{RuleLinearizable, RuleTokens}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		g := one(rng, s, func(r *Record) bool { return r.What == Held })
		if g == nil {
			return nil, false
		}
		h := s.grants[grantID{g.Process, g.Key, g.Token}]
		if next := s.after(h); h.last-h.first < 2 || len(h.strikes) > 0 || next != nil && next.token == h.token+1 {
			return nil, false
		}
		return append(slices.Clone(s.records),
			Record{At: h.first, What: Invoke, Call: Acquire, Process: "9.9", Key: h.key, Op: 1},
			Record{At: h.last - 1, What: Return, Call: Acquire, Process: "9.9", Key: h.key, Op: 1, Outcome: OK, Token: h.token + 1}), true
	}},
	{"a return that is missing", []string{RuleSettle, RuleHistory}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		r := one(rng, s, func(r *Record) bool { return r.What == Return && !s.killed[r.Process] })
		if r == nil {
			return nil, false
		}
		gone := *r
		records := slices.DeleteFunc(slices.Clone(s.records), func(r Record) bool { return r == gone })
		return slices.DeleteFunc(records, func(r Record) bool { return r.What == Exited }), true
	}},
	{"an invoke that is missing", []string{RuleHistory}, func(rng *rand.Rand, s *story) ([]Record, bool) {
		r := one(rng, s, func(r *Record) bool {
			return r.What == Invoke && s.byID[callID{r.Process, r.Op}].ret != nil
		})
		gone := *r
		return slices.DeleteFunc(slices.Clone(s.records), func(r Record) bool { return r == gone }), true
	}},
	{"a return long after the faults", []string{RuleSettle}, func(_ *rand.Rand, s *story) ([]Record, bool) {
		records := slices.DeleteFunc(slices.Clone(s.records), func(r Record) bool { return r.What == Exited })
		return append(records,
			Record{At: s.calm - 5, What: Invoke, Call: Try, Process: "9.9", Key: "key-0", Op: 1},
			Record{At: s.calm + int64(s.rules.Settle) + 1, What: Return, Call: Try, Process: "9.9", Key: "key-0", Op: 1, Outcome: Refused}), true
	}},
}

// neighbours returns two holds of a key, one of which is granted right after the other.
func neighbours(rng *rand.Rand, s *story) (older, newer *grant, ok bool) {
	grants := s.keys["key-0"]
	if len(grants) < 2 {
		return &grant{}, &grant{}, false
	}
	i := rng.IntN(len(grants) - 1)
	older, newer = grants[i], grants[i+1]
	return older, newer, older.held && newer.held
}

// retoken gives a grant another token, in all its records.
func retoken(s *story, g *grant, token func() uint64) []Record {
	records := slices.Clone(s.records)
	for i := range records {
		if r := &records[i]; r.Key == g.key && r.Token == g.token && r.Process == g.process {
			r.Token = token()
		}
	}
	return records
}

// one picks one of the records of some kind, or nil.
func one(rng *rand.Rand, s *story, match func(*Record) bool) *Record {
	var all []*Record
	for i := range s.records {
		if match(&s.records[i]) {
			all = append(all, &s.records[i])
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[rng.IntN(len(all))]
}

func changeOne(match func(*Record) bool, change func(*Record)) func(*rand.Rand, *story) ([]Record, bool) {
	return func(rng *rand.Rand, s *story) ([]Record, bool) {
		r := one(rng, s, match)
		if r == nil {
			return nil, false
		}
		records := slices.Clone(s.records)
		for i := range records {
			if records[i] == *r {
				change(&records[i])
			}
		}
		return records, true
	}
}

// TestMutatedHistories guards that a violation is found wherever it is, among all that is right, in whatever order the records
// are given.
func TestMutatedHistories(t *testing.T) {
	runs := histories(t) / 5
	rules := Rules{Lease: scriptRules.Lease, Settle: 2 * time.Second, Late: scriptRules.Lease}
	applied := map[string]int{}
	for seed := range runs {
		records := simulate(seed, 4, 2, 1500*time.Millisecond, false)
		for _, m := range mutations {
			rng := rand.New(rand.NewPCG(seed, 2))
			wrong, ok := m.mutate(rng, newStory(records, rules, &findings{}))
			if !ok {
				continue
			}
			applied[m.name]++
			rng.Shuffle(len(wrong), func(i, j int) { wrong[i], wrong[j] = wrong[j], wrong[i] })
			found := Check(wrong, rules)
			if !slices.ContainsFunc(found, func(v Violation) bool { return slices.Contains(m.rules, v.Rule) }) {
				t.Errorf("seed %d: %s: found %v, want one of rule %v", seed, m.name, found, m.rules)
			}
		}
	}
	for _, m := range mutations {
		t.Logf("%3d of %d histories: %s", applied[m.name], runs, m.name)
		if applied[m.name] == 0 {
			t.Errorf("never: %s", m.name)
		}
	}
}
