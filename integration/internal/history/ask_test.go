package history

import (
	"strings"
	"testing"
	"time"
)

// refused is an acquisition or a try of process 3.1 that is told of a holder.
func (s *script) refused(call string, from, to int64, token uint64, owner string) *script {
	s.call("3.1", call, 0, from, to, Refused)
	s.last().Named = &Holder{Token: token, Owner: owner}
	return s
}

// tried is refused, of a try whose ctx ended: it says of whom its client had heard.
func (s *script) tried(from, to int64, token uint64, owner string) *script {
	s.call("3.1", Try, 0, from, to, GaveUp)
	s.last().Named = &Holder{Token: token, Owner: owner}
	return s
}

// heard is when a holder was told that somebody asks for its lock.
func (s *script) heard(process string, token uint64, at int64) *script {
	return s.add(at, Record{What: Asked, Process: process, Token: token})
}

// ask is by process 3.1.
func (s *script) ask(token uint64, from, to int64, outcome string) *script {
	return s.call("3.1", Ask, token, from, to, outcome)
}

// long is good, but the first hold goes on for more than a lease, and the second comes later.
func long() *script {
	return begin().held("1.1", 1, 200).release("1.1", 1, 210, 215).acquire("2.1", 2, 5, 220).held("2.1", 2, 221).release("2.1", 2, 222, 223)
}

// set is data that process 1.1 sets.
func (s *script) set(data string, from, to int64) *script {
	at := len(s.records)
	s.call("1.1", SetData, 1, from, to, OK)
	s.records[at].Data = data
	return s
}

// sees is an observation by which a token was told with some data at 50, and 10 later with other data.
func (s *script) sees(first, second string) *script {
	s.observe("4.1", 1, 700, 50, 1)
	s.last().Data = first
	s.add(60, Record{What: Told, Process: "4.1", Op: s.op, Token: 1, Owner: "1", Data: second})
	return s.add(171, Record{What: Told, Process: "4.1", Op: s.op})
}

// during puts a fault into a history.
func (s *script) during(from, to int64) *script {
	return s.add(from, Record{What: Begin, N: 1, Fault: "stall"}).add(to, Record{What: End, N: 1, Fault: "stall"})
}

// TestAcquittedAsks guards what holders may be told, and what others may be told of holders.
func TestAcquittedAsks(t *testing.T) {
	for name, s := range map[string]*script{
		"asked":                                     long().ask(1, 30, 35, OK).heard("1.1", 1, 130),
		"asked twice":                               long().ask(1, 30, 35, OK).ask(1, 31, 36, OK).heard("1.1", 1, 60),
		"told before the call returns":              long().ask(1, 30, 65, OK).heard("1.1", 1, 60),
		"asked by one that gave up":                 long().ask(1, 30, 35, GaveUp).heard("1.1", 1, 190),
		"asked, and not told by one that gave up":   long().ask(1, 30, 35, GaveUp),
		"asked too late":                            long().ask(1, 110, 115, OK),
		"asked in a fault":                          long().during(100, 101).ask(1, 30, 35, OK),
		"one of several":                            long().asked(1, func(r *Record) { r.All = true }).ask(1, 30, 35, OK),
		"named while it held":                       good().refused(Try, 30, 50, 1, "1"),
		"named when it was over":                    good().refused(Acquire, 30, 90, 1, "1"),
		"named by a try that gave up":               good().tried(81, 95, 1, "1"),
		"named when it was over for a moment":       good().refused(Acquire, 130, 140, 1, "1"),
		"named before it knows":                     good().refused(Acquire, 55, 60, 2, "2"),
		"named long before it knows, in a fault":    long().during(150, 155).refused(Acquire, 100, 110, 2, "2"),
		"named long before it knows, after a fault": long().during(-250, -245).refused(Acquire, 100, 110, 2, "2"),
		"named long after, in a fault":              good().during(100, 110).refused(Acquire, 190, 195, 1, "1"),
		"named long before all are granted":         long().asked(2, func(r *Record) { r.All = true }).refused(Acquire, 100, 110, 2, "2"),
		"named, and never heard of it":              good().asks("8.1", 0, 20, 90, GaveUp).refused(Acquire, 30, 50, 7, "8"),
		"data":                                      good().set("a", 20, 25).set("b", 30, 80).sees("a", "b"),
		"data after none":                           good().set("a", 20, 65).sees("", "a"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range Check(s.add(600, Record{What: Quiet}).calm().records, scriptRules) {
				t.Error(v)
			}
		})
	}
}

var plantedAsks = []planted{
	wrong(RuleAsk, "told, and not asked", "and nobody had",
		long().heard("1.1", 1, 50)),
	wrong(RuleAsk, "told before it was asked", "and nobody had",
		long().ask(1, 51, 53, OK).heard("1.1", 1, 50)),
	wrong(RuleAsk, "told what another was asked", "and nobody had",
		long().ask(2, 30, 35, OK).heard("1.1", 1, 60)),
	wrong(RuleNamed, "a holder of a moment ago, by a try", "its release had been confirmed at 0.080000 s",
		good().refused(Try, 81, 90, 1, "1")),
	wrong(RuleNamed, "one that was killed, by a try, when another has held it for long", "had been granted it by then",
		begin().killed("1.1", 70).next().refused(Try, 140, 145, 1, "1")),
	wrong(RuleNamed, "a token of nobody", "a grant that nobody had by then",
		good().refused(Acquire, 30, 50, 7, "8")),
	wrong(RuleNamed, "a token of another", "a grant that nobody had by then",
		good().refused(Acquire, 30, 50, 1, "2")),
	wrong(RuleNamed, "one that asks later", "a grant that nobody had by then",
		good().refused(Acquire, 1, 4, 2, "2")),
	wrong(RuleObserve, "data that nobody has set", `token 1 with data "c", which its holder had not set`,
		good().set("a", 20, 25).sees("a", "c")),
	wrong(RuleObserve, "data that is set later", `token 1 with data "b", which its holder had not set`,
		good().set("a", 20, 25).set("b", 61, 65).sees("a", "b")),
	wrong(RuleObserve, "older data", `token 1 with data "a", which is older`,
		good().set("a", 20, 25).set("b", 30, 35).sees("b", "a")),
	wrong(RuleObserve, "no data after some", `token 1 with data "", which is older`,
		good().set("a", 20, 25).sees("a", "")),
	wrong(RuleHistory, "data of no grant", "which it was not granted",
		good().call("4.1", SetData, 4, 300, 310, Gone)),
}

// closes is the end of a process's client.
func (s *script) closes(process string, from, to int64, outcome string) *script {
	s.call(process, Close, 0, from, to, outcome)
	return s.killed(process, max(from, to)+1)
}

// TestAcquittedCloses guards how a client may be closed that is in use.
func TestAcquittedCloses(t *testing.T) {
	for name, s := range map[string]*script{
		"with a lock":                  begin().closes("1.1", 70, 80, OK).lost("1.1", 1, 71, ByClose).next(),
		"with a lock that it releases": begin().closes("1.1", 70, 80, OK).release("1.1", 1, 75, 76).next(),
		"with a lock, given back before its holder calls": begin().closes("1.1", 70, 99, OK).release("1.1", 1, 96, 97).
			acquire("2.1", 2, 5, 90).held("2.1", 2, 95, 150).release("2.1", 2, 160, 170),
		"in a term":                    term(75).closes("1.1", 70, 80, OK).release("1.1", 1, 76, 79).next(),
		"in a term, and not confirmed": term(90).closes("1.1", 70, 92, Pending).during(80, 81).lost("1.1", 1, 85, "lease_expired").acquire("2.1", 2, 5, 100).release("2.1", 2, 110, 120),
		"it takes a while":             good().closes("3.1", 180, 350, OK),
		"it was stopped meanwhile": good().closes("3.1", 180, 9000, OK).add(190, Record{What: Stopped, Process: "3.1"}).
			add(8000, Record{What: Resumed, Process: "3.1"}),
	} {
		t.Run(name, func(t *testing.T) {
			rules := scriptRules
			rules.Steady, rules.Settle = true, time.Hour
			for _, v := range Check(s.during(-50, -40).calm().records, rules) {
				t.Error(v)
			}
		})
	}
}

var plantedCloses = []planted{
	wrong(RuleCause, "a lock ended by a close that nobody asked for", "and nobody had closed it",
		begin().lost("1.1", 1, 65, ByClose).next()),
	wrong(RuleCause, "a lock ended by a close of later", "and nobody had closed it",
		begin().closes("1.1", 70, 80, OK).lost("1.1", 1, 65, ByClose).next()),
	wrong(RuleEnded, "a lock outlives its client", "its client had been closed",
		begin().closes("1.1", 50, 55, Pending).remove(func(r *Record) bool { return r.What == Killed }).next()),
	wrong(RuleTerm, "a client was closed while it led", "its client was closed by 0.080000 s, and lead had not returned",
		term(90).closes("1.1", 70, 80, OK).remove(func(r *Record) bool { return r.What == Killed }).next()),
	wrong(RuleCause, "taken over by nobody, after a break", "and nobody can have taken it over",
		begin().breaks(1, 50, 55, OK).lost("1.1", 1, 65, "taken_over").acquire("2.1", 2, 70, 120).held("2.1", 2, 121).release("2.1", 2, 122, 123)),
	wrong(RuleHistory, "asked, though its process was gone", "the process was gone at",
		begin().ask(1, 30, 35, OK).killed("1.1", 70).add(400, Record{What: Asked, Process: "1.1", Token: 1}).
			acquire("2.1", 2, 5, 171).held("2.1", 2, 172).release("2.1", 2, 173, 174)),
	wrong(RuleCause, "taken over by nobody", "and nobody can have taken it over",
		begin().lost("1.1", 1, 65, "taken_over").acquire("2.1", 2, 70, 170).held("2.1", 2, 171).release("2.1", 2, 172, 173)),
}

// TestSlowSetting guards that the setting of data ends with its lock, on such a machine.
func TestSlowSetting(t *testing.T) {
	for at, wrong := range map[int64]bool{60: false, 104: false, 106: true} { // released at 80
		rules := scriptRules
		rules.Steady, rules.Settle = true, time.Hour
		found := Check(good().set("a", 50, at).calm().records, rules)
		if len(found) > 0 != wrong || wrong && !strings.Contains(found[0].Text, "its lock had ended at 0.080000 s") {
			t.Errorf("returned at %d: %v", at, found)
		}
	}
}

// TestSlowClose guards that a client is closed within four leases, on a machine that never stands still.
func TestSlowClose(t *testing.T) {
	rules := scriptRules
	rules.Steady, rules.Settle = true, time.Hour
	for _, ttl := range []int64{0, 99} {
		s := good().closes("3.1", 180, 180+2401-ttl, OK)
		s.edit(func(r *Record) bool { return r.Call == Close }, func(r *Record) { r.TTL = ttl * ms })
		if found := Check(s.calm().records, rules); len(found) != 1 || found[0].Rule != RuleSettle {
			t.Errorf("%v", found)
		}
	}
	never := good().call("3.1", Close, 0, 180, 0, "").killed("3.1", 180+2401)
	if found := Check(never.calm().records, rules); len(found) != 1 || !strings.Contains(found[0].Text, "had not returned by 2.581000 s") {
		t.Errorf("%v", found)
	}
}

// plantedSteadily are violations that could be excused by a machine that stands still.
var plantedSteadily = steadily(
	wrong(RuleAsk, "asked, and not told", "was asked for at 0.035000 s, and it was not told",
		long().ask(1, 30, 35, OK)),
	wrong(RuleAsk, "asked, and told late", "was asked for at 0.035000 s, and it was not told",
		long().ask(1, 30, 35, OK).heard("1.1", 1, 136)),
	wrong(RuleNamed, "a holder of long ago", `process "3.1": acquire, invoked at 0.190000 s, was told at 0.195000 s that "1" has it, with token 1: its release had been confirmed at 0.080000 s`,
		good().refused(Acquire, 190, 195, 1, "1")),
	wrong(RuleNamed, "one that waits", "it was granted at 0.220000 s",
		long().refused(Acquire, 100, 110, 2, "2")),
	wrong(RuleNamed, "one whose client was closed", "its release had been confirmed at 0.080000 s",
		begin().closes("1.1", 70, 80, OK).next().refused(Acquire, 190, 195, 1, "1")),
	wrong(RuleNamed, "one that was lost long ago, and has a successor", `process "2.1", token 2, had been granted it by then`,
		begin().lost("1.1", 1, 70, "broken").breaks(1, 62, 65, OK).acquire("2.1", 2, 5, 100).held("2.1", 2, 110, 450).
			refused(Acquire, 430, 440, 1, "1").release("2.1", 2, 460, 465)),
	wrong(RuleSettle, "a setting that never returns, though its lock was released long ago", "had not returned by 1.200000 s",
		good().call("1.1", SetData, 1, 50, 0, "").edit(func(r *Record) bool { return r.Call == SetData }, func(r *Record) { r.Data = "a" }).
			killed("1.1", 1200)),
)
