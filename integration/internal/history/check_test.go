package history

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var (
	shared  = Mode{Shared: true}
	permits = Mode{Shared: true, Limit: 2}
	steady  = func(r *Rules) { r.Steady = true }
	prompt  = func(r *Rules) {
		r.Prompt, r.Relief, r.Recovery, r.Queued = 40*time.Millisecond, 20*time.Millisecond, 60*time.Millisecond, true
	}
	watched = func(r *Rules) { prompt(r); r.Queued, r.Watched = false, true }
	turn    = func(r *Rules) { r.Turn, r.Hushed = 50*time.Millisecond, []string{"events lost"} }
)

// waits is a request that waits for the release of the first hold at 80.
func waits(to int64) *script {
	return begin().release("1.1", 1, 70, 80).acquire("2.1", 2, 5, to).held("2.1", 2, to+1)
}

// lastPermit has one of two permits free from 80 on, and another request that waits for it until 400.
func lastPermit() *script {
	return (&script{}).hold("1.1", 1, 0, 80).hold("3.1", 3, 0, 399).acquire("2.1", 9, 5, 400).held("2.1", 9, 401).mode(permits, 1, 3, 9)
}

// TestCheck: the judge finds each violation, names its rule and reports nothing else. It acquits a correct history that looks like it.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		rule, says  string // a part of the text of each violation
		wrong, good *script
		rules       func(*Rules) // nil: scriptRules
	}{
		"two holders": {
			RuleExclusion, "no client had broken or reclaimed it",
			begin().held("1.1", 1, 120).next(), good(), nil,
		},
		"a release after the next grant": {RuleExclusion, "two holders", begin().release("1.1", 1, 101, 130).next(), good(), nil},
		"a grant that was never used": {
			RuleExclusion, "two holders",
			begin().acquire("2.1", 2, 5, 50).killed("2.1", 51), begin().acquire("2.1", 2, 5, 65).killed("2.1", 66), nil,
		},
		"the lower token comes second": {
			RuleExclusion, "two holders",
			good().acquire("3.1", 4, 11, 200).held("3.1", 4, 210).acquire("4.1", 3, 12, 230).held("4.1", 3, 240).release("4.1", 3, 250, 260),
			good(), nil,
		},
		"a lease after the break": {
			RuleExclusion, "excuses from 0.085000 s to 0.195000 s only",
			begin().breaks(1, 85, 95, OK).held("1.1", 1, 140, 196).next().held("2.1", 2, 197).edit(
				func(r *Record) bool { return r.Call == Release }, func(r *Record) { r.At += 50 * ms },
			),
			begin().breaks(1, 85, 95, OK).held("1.1", 1, 140, 190).lost("1.1", 1, 191, "broken").next(), nil,
		},
		"a holder beside the next after a break that waits": {
			RuleExclusion, "which ends no lock before its holder knows",
			begin().breaks(1, 85, 95, OK).held("1.1", 1, 140).lost("1.1", 1, 141, "broken").next(),
			begin().breaks(1, 85, 95, OK).with(func(r *Record) { r.Now = true }).held("1.1", 1, 140).lost("1.1", 1, 141, "broken").next(),
			func(r *Rules) { r.Watched = true },
		},
		"a reclaim by another owner": {
			RuleExclusion, "no client had broken or reclaimed it",
			begin().reclaim("3.1", 3, 85, 200, OK).held("1.1", 1, 140).next(),
			begin().reclaim("1.2", 2, 85, 100, OK).held("1.2", 2, 110, 150).held("1.1", 1, 140).lost("1.1", 1, 141, "reclaimed"), nil,
		},
		"a writer beside readers": {RuleExclusion, "shared", crowd().mode(shared, 1, 2), crowd().mode(shared, 1, 2, 3), nil},
		"permits of two limits": {
			RuleExclusion, "one of 2",
			crowd().mode(shared, 1, 2).mode(permits, 3), crowd().mode(shared, 1, 2, 3), nil,
		},
		"a permit too many": {
			RuleExclusion, "3 hold a permit at 0.045000 s",
			crowd().mode(permits, 1, 2, 3),
			(&script{}).hold("1.1", 1, 0, 90).hold("2.1", 2, 20, 99).hold("3.1", 3, 95, 160).mode(permits, 1, 2, 3), nil,
		},
		"a holder whose write was refused": {
			RuleExclusion, "the register refused a write",
			begin().acquire("2.1", 2, 5, 100).wrote("2.1", 2, 55, true).wrote("1.1", 1, 58, false),
			good().wrote("1.1", 1, 300, false), nil,
		},
		"a verification after the break": {
			RuleVerified, "it was broken by operator",
			begin().breaks(1, 62, 68, OK).verify("1.1", 1, 69, 71).next(), begin().breaks(1, 62, 68, OK).verify("1.1", 1, 67, 71).next(), nil,
		},
		"a verification while the next holds": {
			RuleVerified, `process "2.1", token 2, had been granted it`,
			begin().breaks(1, 85, 95, GaveUp).verify("1.1", 1, 140, 145).next(),
			begin().breaks(1, 85, 95, GaveUp).verify("1.1", 1, 99, 145).next(), nil,
		},
		"a token twice": {
			RuleTokens, "token 2 was granted twice",
			good().hold("3.1", 2, 180, 220), good().hold("3.1", 3, 180, 220), nil,
		},
		"a token falls": {
			RuleTokens, "tokens fell",
			good().hold("3.1", 5, 180, 220).hold("4.1", 4, 230, 260), good().hold("3.1", 5, 180, 220).hold("4.1", 6, 230, 260), nil,
		},
		"held after its release": {RuleEnded, "it had been released", good().held("1.1", 1, 85), good(), nil},
		"verified after its loss": {
			RuleEnded, "it had observed the loss",
			begin().fault("cut", 0, 9).lost("1.1", 1, 65, "lease_expired").verify("1.1", 1, 66, 68), good(), nil,
		},
		"broken by no client": {
			RuleCause, "no client broke it",
			begin().lost("1.1", 1, 65, "broken").next(), begin().breaks(1, 61, 63, OK).lost("1.1", 1, 65, "broken").next(), nil,
		},
		"reclaimed by no client": {
			RuleCause, "no client reclaimed it",
			begin().lost("1.1", 1, 65, "reclaimed").next(), begin().reclaim("1.2", 2, 5, 100, OK).lost("1.1", 1, 65, "reclaimed"), nil,
		},
		"closed by no client": {
			RuleCause, "its client was not closed",
			begin().lost("1.1", 1, 65, ByClose).next(),
			begin().call("1.1", Close, 0, 61, 70, OK).lost("1.1", 1, 65, ByClose).next(), nil,
		},
		"a TTL that has not ended": {
			RuleCause, "its TTL was",
			begin().lost("1.1", 1, 65, "ttl_expired").next(),
			(&script{}).acquire("1.1", 1, 0, 10).with(func(r *Record) { r.TTL = 50 * ms }).held("1.1", 1, 20).
				lost("1.1", 1, 61, "ttl_expired"), nil,
		},
		"a lease that ran out": {
			RuleCause, "no fault that ends a lease",
			begin().lost("1.1", 1, 65, "lease_expired").next(), begin().fault("cut", 0, 9).lost("1.1", 1, 65, "lease_expired").next(), steady,
		},
		"taken over without a fault": {
			RuleCause, "no fault that ends a lease",
			begin().lost("1.1", 1, 65, "taken_over").next(), begin().breaks(1, 61, 63, OK).lost("1.1", 1, 65, "taken_over").next(), steady,
		},
		"a call that failed": {
			RuleFailed, "failed at 0.090000 s",
			good().call("3.1", Acquire, 0, 20, 90, Failed), good().call("3.1", Acquire, 0, 20, 90, GaveUp), nil,
		},
		"lead after its term": {
			RuleTerm, "the key was given back at 0.070000 s",
			begin().lead("1.1", 1, 15, 75).release("1.1", 1, 70, 80).next(), begin().lead("1.1", 1, 15, 69).release("1.1", 1, 70, 80).next(), nil,
		},
		"a resignation during lead": {
			RuleTerm, "its resignation was confirmed",
			begin().lead("1.1", 1, 15, 69).call("1.1", Resign, 1, 62, 68, OK).release("1.1", 1, 70, 80).next(),
			begin().lead("1.1", 1, 15, 69).call("1.1", Resign, 1, 62, 80, OK).release("1.1", 1, 70, 80).next(), nil,
		},
		"a lost permit": {
			RuleFree, "since then 0 were granted",
			good().quiet().call("9.1", Try, 0, 610, 615, Refused),
			good().quiet().hold("8.1", 3, 605, 640).call("9.1", Try, 0, 610, 615, Refused), nil,
		},
		"a last state that was missed": {
			RuleObserve, "was last told, at 0.105000 s, of token 2",
			good().quiet().observe("3.1", 1, 700, 15, 1, 81, 0, 105, 2), good().quiet().observe("3.1", 1, 700, 15, 1, 105, 2, 171, 0), nil,
		},
		"a holder that comes back": {
			RuleObserve, "token 1 comes back",
			good().observe("3.1", 1, 700, 15, 1, 81, 0, 85, 1, 171, 0), good().observe("3.1", 1, 700, 15, 1, 81, 0), nil,
		},
		"a holder that is told to be gone": {
			RuleObserve, "held it until 0.060000 s",
			good().observe("3.1", 1, 700, 15, 1, 50, 0), good().observe("3.1", 1, 700, 15, 1, 61, 0), nil,
		},
		"a waiter that is told to hold": {
			RuleObserve, "held it until 0.060000 s",
			good().observe("3.1", 1, 700, 50, 2), good().observe("3.1", 1, 700, 61, 2), nil,
		},
		"a told token that falls": {
			RuleObserve, "lower than token 2",
			good().observe("3.1", 1, 700, 105, 2, 172, 1), good().observe("3.1", 1, 700, 15, 1, 105, 2), nil,
		},
		"a told grant that no client has": {
			RuleObserve, "a grant that no client had by then",
			good().observe("3.1", 1, 700, 200, 9), good().call("9.1", Acquire, 0, 180, 210, GaveUp).observe("3.1", 1, 700, 200, 9), nil,
		},
		"a named grant that no client has": {
			RuleObserve, "a grant that no client had by then",
			good().call("3.1", Try, 0, 30, 50, Refused).last(func(r *Record) { r.Named = &Holder{Token: 7, Owner: "8"} }),
			good().call("3.1", Try, 0, 30, 50, Refused).last(func(r *Record) { r.Named = &Holder{Token: 1, Owner: "1"} }), nil,
		},
		"told data that was never set": {
			RuleObserve, "which its holder had not set",
			good().observe("4.1", 1, 700, 15, 1).last(func(r *Record) { r.Data = "a" }),
			good().call("1.1", SetData, 1, 11, 14, OK).with(func(r *Record) { r.Data = "a" }).observe("4.1", 1, 700, 15, 1).
				last(func(r *Record) { r.Data = "a" }), nil,
		},
		"told without being asked": {
			RuleAsk, "no client had asked",
			good().add(50, Record{What: Asked, Process: "1.1", Token: 1}),
			good().call("3.1", Ask, 1, 30, 35, OK).add(50, Record{What: Asked, Process: "1.1", Token: 1}), nil,
		},
		"asked and not told": {
			RuleAsk, "not told within a lease",
			begin().call("3.1", Ask, 1, 30, 35, OK).held("1.1", 1, 200), good().call("3.1", Ask, 1, 30, 35, OK), steady,
		},
		"a free key": {RuleTurn, "from 0.080000 s to 0.131000 s", waits(131), waits(130), turn},
		"a free key after lost events": {
			RuleTurn, "from 0.600000 s",
			waits(651).fault("events lost", 85, 200), waits(650).fault("events lost", 85, 200), turn,
		},
		"a free key in a queue": {RuleTurn, "(41ms)", waits(121), waits(120), prompt},
		"a free key after a fault": {
			RuleTurn, "from 0.120000 s",
			waits(161).fault("stall", 30, 60), waits(160).fault("stall", 30, 60), prompt,
		},
		"a free permit": {
			RuleTurn, "one of 2",
			lastPermit(), lastPermit().call("4.1", Acquire, 0, 3, 380, GaveUp), prompt,
		},
		"a key of a dead holder": {
			RuleTurn, "from 0.430000 s",
			begin().killed("1.1", 70).acquire("2.1", 9, 330, 471).held("2.1", 9, 472),
			begin().killed("1.1", 70).acquire("2.1", 9, 330, 470).held("2.1", 9, 471), watched,
		},
		"a call that never returns": {
			RuleSettle, "had not returned at the end",
			good().call("3.1", Acquire, 0, 200, 0, ""), good(), nil,
		},
		"a call that returns late": {
			RuleSettle, "acquire must be over 200ms after 0.500000 s",
			good().call("3.1", Acquire, 0, 180, 701, GaveUp), good().call("3.1", Acquire, 0, 180, 699, GaveUp), nil,
		},
		"a Close that takes long": {
			RuleSettle, "must return within",
			good().call("3.1", Close, 0, 180, 180+2401, OK), good().call("3.1", Close, 0, 180, 180+2399, OK),
			func(r *Rules) { r.Steady, r.Settle = true, time.Hour },
		},
		"data that outlasts its lock": {
			RuleSettle, "its lock had ended at 0.080000 s",
			good().call("1.1", SetData, 1, 50, 106, GaveUp), good().call("1.1", SetData, 1, 50, 104, GaveUp), steady,
		},
		"a hold without a grant": {RuleHistory, "which it was not granted", good().held("4.1", 4, 300), good(), nil},
		"a return without a call": {
			RuleHistory, "without having been invoked",
			good().add(300, Record{What: Return, Process: "1.1", Op: 77, Call: Try}), good(), nil,
		},
		"a record of a dead process": {RuleHistory, "the process was gone", good().killed("2.1", 165), good().killed("2.1", 175), nil},
		"no hold": {
			RuleHistory, "nothing was tested",
			(&script{}).call("1.1", Acquire, 0, 10, 20, GaveUp), good(), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := scriptRules
			if c.rules != nil {
				c.rules(&rules)
			}
			for _, s := range []*script{c.wrong, c.good} {
				s.calm()
				rand.Shuffle(len(s.records), func(i, j int) { s.records[i], s.records[j] = s.records[j], s.records[i] })
			}
			for _, v := range Check(c.good.records, rules) {
				t.Errorf("in the correct history: %v", v)
			}
			found := Check(c.wrong.records, rules)
			if len(found) == 0 {
				t.Error("no violation was found")
			}
			for _, v := range found {
				if v.Rule != c.rule || !strings.Contains(v.Text, c.says) || v.From > v.To {
					t.Errorf("%v, want the rule %s and %q", v, c.rule, c.says)
				}
			}
		})
	}
}

// TestCheck_ManyViolations_ListsSome: the findings on a thoroughly wrong history stay readable.
func TestCheck_ManyViolations_ListsSome(t *testing.T) {
	s := good()
	for i := range int64(50) {
		s.held("8.1", 8, 300+i)
	}
	found := Check(s.calm().records, scriptRules)
	if len(found) != MostPerRule+1 || found[MostPerRule].Text != "and 30 more" {
		t.Errorf("%d violations, the last: %v", len(found), found[len(found)-1])
	}
	var out strings.Builder
	if err := Count(s.records).Write(&out); err != nil || !strings.Contains(out.String(), "grants     2: 2 holds") {
		t.Errorf("%v, figures:\n%s", err, out.String())
	}
}
