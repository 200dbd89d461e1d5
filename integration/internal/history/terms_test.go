package history

import "testing"

// term is begin as a term: lead is called at 15, and goes on.
func term(returns int64) *script { return begin().lead("1.1", 1, 15, returns) }

func quiet(s *script) *script { return s.add(600, Record{What: Quiet}) }

// late is a grant of token 3 to process 3, and then one of token 4, which it never hears of. A fault ends before its call,
// or during it.
func late(end int64) *script {
	return good().add(171, Record{What: Begin, N: 1, Fault: "late request"}).add(end, Record{What: End, N: 1}).
		acquire("3.1", 3, 180, 200).release("3.1", 3, 210, 220).observe("4.1", 1, 700, 15, 1, 81, 0, 105, 2, 171, 0, 201, 3, 221, 0, 230, 4, 250, 0).
		edit(of(Told, "4.1", 4), func(r *Record) { r.Owner = "3" })
}

// TestAcquittedTerms guards what elections and observers may do.
func TestAcquittedTerms(t *testing.T) {
	for name, s := range map[string]*script{
		"a term":                         term(69).release("1.1", 1, 70, 80).next(),
		"a term that was lost":           term(67).lost("1.1", 1, 65, "session_expired").next(),
		"killed while it led":            term(0).killed("1.1", 65).next(),
		"resigned":                       term(69).call("1.1", Resign, 1, 50, 80, OK).release("1.1", 1, 70, 80).next(),
		"resigned, and did not wait":     term(69).call("1.1", Resign, 1, 50, 55, Pending).release("1.1", 1, 70, 80).next(),
		"resigned what was lost":         term(67).call("1.1", Resign, 1, 50, 66, Gone).lost("1.1", 1, 65, "broken").breaks(1, 61, 63, OK).next(),
		"two terms of a process":         term(69).release("1.1", 1, 70, 80).next().acquire("1.1", 3, 70, 190).lead("1.1", 3, 191, 210).held("1.1", 3, 200).release("1.1", 3, 211, 220),
		"told all":                       good().observe("3.1", 1, 700, 5, 0, 15, 1, 81, 0, 105, 2, 171, 0),
		"told of states, and not of all": good().observe("3.1", 1, 700, 15, 1, 171, 0),
		"told before the holder is":      good().observe("3.1", 1, 700, 5, 1, 75, 0, 90, 2, 165, 0),
		"told the last state only":       good().observe("3.1", 300, 700, 310, 0),
		"left before the end":            good().observe("3.1", 1, 100, 15, 1),
		"killed before the end":          good().observe("3.1", 1, 100, 15, 1).remove(func(r *Record) bool { return r.Call == Observe && r.What == Return }).killed("3.1", 100),
		"came when all was quiet":        good().observe("3.1", 650, 700),
		"told what was known before":     good().observe("3.1", 172, 700, 173, 2, 180, 0),
		"told of one that was broken":    begin().breaks(1, 85, 95, OK).observe("3.1", 1, 700, 15, 1, 96, 0, 105, 2, 171, 0).held("1.1", 1, 140).lost("1.1", 1, 145, "broken").next(),
		"told of a grant that its owner never heard of": good().call("8.1", Acquire, 0, 180, 0, "").edit(of(Invoke, "8.1", 0), func(r *Record) { r.Owner = "8" }).
			killed("8.1", 195).observe("3.1", 1, 700, 15, 1, 81, 0, 105, 2, 171, 0, 200, 8, 300, 0),
		"told of a grant that was given up, before one of the same call": good().acquire("3.1", 31, 180, 250).release("3.1", 31, 260, 270).
			observe("4.1", 1, 700, 15, 1, 81, 0, 105, 2, 171, 0, 200, 30, 220, 0, 240, 31, 270, 0),
		"told of a late grant": late(190),
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range Check(quiet(s).calm().records, scriptRules) {
				t.Error(v)
			}
		})
	}
}

var plantedTerms = []planted{
	wrong(RuleExclusion, "two terms", "two holders from 0.110000 s",
		term(0).held("1.1", 1, 120).killed("1.1", 130).acquire("2.1", 2, 5, 100).lead("2.1", 2, 101, 152).held("2.1", 2, 110, 150).release("2.1", 2, 160, 170)),
	wrong(RuleEnded, "the ctx of lead outlives the lock", "it had observed the loss",
		term(70).lost("1.1", 1, 50, "session_expired").next()),
	wrong(RuleTerm, "given back before lead has returned", "the key was given back at 0.070000 s, but lead returned at 0.075000 s",
		term(75).release("1.1", 1, 70, 80).next()),
	wrong(RuleTerm, "given back, and lead does not return", "lead had not returned",
		term(0).release("1.1", 1, 70, 80).killed("1.1", 400).next()),
	wrong(RuleTerm, "lead sees that the key was given back", "lead saw at 0.065000 s",
		term(67).lost("1.1", 1, 65, "released").next()),
	wrong(RuleTerm, "a resignation was confirmed too early", "its resignation was confirmed at 0.068000 s",
		term(69).call("1.1", Resign, 1, 62, 68, OK).release("1.1", 1, 70, 80).next()),
	wrong(RuleTerm, "a resignation of nobody", "nobody led",
		begin().call("1.1", Resign, 1, 62, 81, OK).release("1.1", 1, 70, 80).next()),
	wrong(RuleTerm, "lead was called late", "it was held from 0.020000 s",
		begin().lead("1.1", 1, 25, 69).release("1.1", 1, 70, 80).next()),
	wrong(RuleTerm, "lead held when it had returned", "lead returned at 0.050000 s",
		term(50).release("1.1", 1, 70, 80).next()),
	wrong(RuleTerm, "lead was called twice", "lead was called twice",
		term(69).lead("1.1", 1, 16, 68).release("1.1", 1, 70, 80).next()),
	wrong(RuleSettle, "lead never returned", "lead, invoked at 0.015000 s, had not returned at the end",
		term(0).next()),
	wrong(RuleHistory, "lead without a grant", "which it was not granted",
		good().lead("4.1", 4, 300, 310)),
}

var plantedTellings = []planted{
	wrong(RuleObserve, "the last state was missed", "was last told, at 0.105000 s, of token 2",
		quiet(good().observe("3.1", 1, 700, 15, 1, 81, 0, 105, 2))),
	wrong(RuleObserve, "the last state was missed, and the key was had since all was quiet", "was last told, at 0.105000 s, of token 2",
		quiet(good().observe("3.1", 1, 700, 15, 1, 81, 0, 105, 2)).hold("9.1", 100, 610, 640)),
	wrong(RuleObserve, "the last state was told when it was too late", "was last told",
		quiet(good().observe("3.1", 1, 700, 15, 1, 81, 0, 105, 2, 650, 0))),
	wrong(RuleObserve, "nothing was told", "was told nothing",
		quiet(good().observe("3.1", 1, 700))),
	wrong(RuleObserve, "a waiter", `although process "1.1", token 1, held it until 0.060000 s`,
		good().observe("3.1", 1, 700, 15, 1, 50, 2, 171, 0)),
	wrong(RuleObserve, "nobody, while somebody held", "that nobody has it: although",
		good().observe("3.1", 1, 700, 15, 1, 50, 0, 105, 2, 171, 0)),
	wrong(RuleObserve, "nobody, while somebody held what was broken long ago", "which excuses from",
		begin().breaks(1, 30, 35, OK).held("1.1", 1, 140).lost("1.1", 1, 145, "broken").observe("3.1", 1, 700, 15, 1, 55, 0, 171, 2, 180, 0).
			acquire("2.1", 2, 5, 170).release("2.1", 2, 175, 180)),
	wrong(RuleObserve, "a token that nobody has", "a grant that nobody had by then",
		good().observe("3.1", 1, 700, 15, 1, 171, 0, 200, 9, 210, 0)),
	wrong(RuleObserve, "a token that another has", "a grant that nobody had by then",
		good().observe("3.1", 1, 700, 15, 1, 105, 2).edit(of(Told, "3.1", 2), func(r *Record) { r.Owner = "1" })),
	wrong(RuleObserve, "a token that nobody has asked for yet", "a grant that nobody had by then",
		good().observe("3.1", 1, 700, 4, 2, 171, 0)),
	wrong(RuleObserve, "a grant of one that asked later", "a grant that nobody had by then",
		good().call("9.1", Try, 0, 210, 220, GaveUp).edit(of(Invoke, "9.1", 0), func(r *Record) { r.Owner = "9" }).observe("3.1", 1, 700, 15, 1, 200, 9, 210, 0)),
	wrong(RuleObserve, "a grant after that of the same call, which no fault made late", "a grant that nobody had by then", late(172)),
	wrong(RuleObserve, "a token falls", "a token lower than 2",
		good().observe("3.1", 1, 700, 105, 2, 171, 0, 172, 1, 180, 0)),
	wrong(RuleObserve, "what was over comes back", "it had been told was over",
		good().observe("3.1", 1, 700, 15, 1, 81, 0, 85, 1, 105, 2, 171, 0)),
	wrong(RuleObserve, "a token twice", "the same twice in a row",
		good().observe("3.1", 1, 700, 15, 1, 16, 1, 171, 0)),
	wrong(RuleObserve, "nobody twice", "the same twice in a row",
		good().observe("3.1", 1, 700, 171, 0, 172, 0)),
	wrong(RuleFailed, "an observation that failed", "observe, invoked at 0.001000 s, failed",
		good().observe("3.1", 1, 90, 15, 1).edit(func(r *Record) bool { return r.Outcome == Closed }, func(r *Record) { r.Outcome = Failed })),
	wrong(RuleHistory, "told by no observation", "no observation of key",
		good().add(50, Record{What: Told, Process: "3.1", Op: 77, Token: 1, Owner: "1"})),
	wrong(RuleHistory, "told when it was over", "no observation of key",
		good().observe("3.1", 1, 90, 15, 1, 91, 0)),
}
