package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAcquitted guards what a lock may do: histories in which every excuse and every open outcome occurs have no
// violation.
func TestAcquitted(t *testing.T) {
	for name, s := range map[string]*script{
		"two holds":                             good(),
		"released in the background":            begin().call("1.1", Release, 1, 70, 75, Pending).next(),
		"released, and never confirmed":         begin().call("1.1", Release, 1, 70, 0, "").killed("1.1", 300).next(),
		"killed":                                begin().killed("1.1", 65).next(),
		"killed while it waited":                begin().release("1.1", 1, 70, 80).call("3.1", Acquire, 0, 20, 0, "").killed("3.1", 90).next(),
		"taken over by its own process":         begin().acquire("1.1", 2, 90, 205).call("1.1", Release, 1, 70, 207, Gone).because("taken_over").release("1.1", 2, 210, 220),
		"session expired":                       begin().lost("1.1", 1, 65, "session_expired").call("1.1", Release, 1, 70, 80, Gone).next(),
		"TTL":                                   begin().ttl(1, 50).lost("1.1", 1, 61, "ttl_expired").call("1.1", Release, 1, 90, 99, Gone).next(),
		"TTL, after a jump":                     begin().ttl(1, 500).jump("1.1", 440, 50, 60).lost("1.1", 1, 61, "ttl_expired").next(),
		"TTL, in a jump":                        begin().ttl(1, 500).jump("1.1", 440, 60, 70).lost("1.1", 1, 61, "ttl_expired").next(),
		"TTL, after a jump at the grant":        begin().ttl(1, 500).jump("1.1", 440, -5, 1).lost("1.1", 1, 61, "ttl_expired").next(),
		"TTL, after two jumps":                  begin().ttl(1, 500).jump("1.1", 400, 5, 6).jump("1.1", -90, 7, 8).jump("1.1", 40, 50, 51).lost("1.1", 1, 61, "ttl_expired").next(),
		"TTL, killed in a jump":                 begin().ttl(1, 500).jump("1.1", 440, 60, 0).lost("1.1", 1, 61, "ttl_expired").killed("1.1", 62).next(),
		"gave up":                               good().call("3.1", Acquire, 0, 20, 90, GaveUp),
		"tried in vain":                         good().call("3.1", Try, 0, 85, 90, Refused),
		"told too late":                         begin().release("1.1", 1, 70, 80).acquire("3.1", 2, 15, 300).lost("3.1", 2, 301, "session_expired").acquire("2.1", 3, 90, 160).held("2.1", 3, 170, 180).release("2.1", 3, 190, 200),
		"told of while it was broken":           begin().release("1.1", 1, 70, 80).acquire("3.1", 2, 15, 140).breaks(2, 85, 95, OK).acquire("2.1", 3, 20, 100).held("2.1", 3, 110, 160).held("3.1", 2, 145, 155).lost("3.1", 2, 156, "broken").release("2.1", 3, 200, 210),
		"told of when it had been broken":       begin().release("1.1", 1, 70, 80).acquire("3.1", 2, 15, 140).breaks(2, 85, 95, OK).acquire("2.1", 3, 20, 100).held("2.1", 3, 110, 130).release("2.1", 3, 135, 138).held("3.1", 2, 145, 155).lost("3.1", 2, 156, "broken"),
		"broken":                                begin().breaks(1, 85, 95, OK).held("1.1", 1, 140, 190).lost("1.1", 1, 191, "broken").next(),
		"broken, as the release learns":         begin().breaks(1, 65, 75, OK).call("1.1", Release, 1, 70, 80, Gone).because("broken").next(),
		"broken, and nobody knows":              begin().breaks(1, 85, 95, GaveUp).held("1.1", 1, 140, 199).lost("1.1", 1, 200, "broken").next(),
		"broken by a request sent twice":        begin().breaks(1, 85, 99, Gone).held("1.1", 1, 140).lost("1.1", 1, 145, "broken").next(),
		"broken, verified before":               begin().breaks(1, 85, 95, OK).verify("1.1", 1, 80, 90).held("1.1", 1, 120).call("1.1", Verify, 1, 121, 130, Gone).next(),
		"reclaimed":                             begin().reclaim("1.2", 2, 85, 100, OK).held("1.2", 2, 110, 150).held("1.1", 1, 140).lost("1.1", 1, 141, "reclaimed").release("1.2", 2, 160, 170),
		"reclaimed, another is next":            begin().reclaim("1.2", 3, 85, 180, OK).held("1.2", 3, 190).held("1.1", 1, 140).lost("1.1", 1, 141, "reclaimed").next().release("1.2", 3, 200, 210),
		"reclaimed by one that was killed":      begin().reclaim("1.2", 0, 85, 0, "").killed("1.2", 90).held("1.1", 1, 140).lost("1.1", 1, 141, "reclaimed").next(),
		"not reclaimed, by one that was killed": begin().reclaim("1.2", 0, 85, 0, "").killed("1.2", 90).verify("1.1", 1, 200, 205).held("1.1", 1, 210).release("1.1", 1, 220, 230),
		"a write that comes late":               good().wrote("1.1", 1, 300, false),
		"broken, a write is refused":            begin().breaks(1, 85, 95, OK).wrote("1.1", 1, 130, false).held("1.1", 1, 135).lost("1.1", 1, 140, "broken").next(),
		"unfenced, going back":                  good().add(300, Record{What: Wrote, Process: "1.1", Token: 1}).add(301, Record{What: Wrote, Process: "2.1", Token: 2}).add(302, Record{What: Wrote, Process: "1.1", Token: 1}),
		"looked and released at once":           begin().held("1.1", 1, 75).release("1.1", 1, 70, 80).next(),
		"waits until all is calm":               good().acquire("3.1", 3, 180, 690).held("3.1", 3, 691).release("3.1", 3, 692, 693),
		"another key, at the same time":         good().add(20, Record{What: Invoke, Process: "3.1", Key: "other", Call: Acquire, Op: 99}).add(25, Record{What: Return, Process: "3.1", Key: "other", Call: Acquire, Op: 99, Outcome: OK, Token: 1}).add(50, Record{What: Held, Process: "3.1", Key: "other", Token: 1}),
		"one process, one key after itself":     good().acquire("1.1", 3, 180, 190).held("1.1", 3, 200).release("1.1", 3, 210, 220),
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range Check(s.calm().records, scriptRules) {
				t.Error(v)
			}
		})
	}
}

// A planted violation is a history with exactly one violation.
type planted struct {
	rule, name string
	says       string // a part of its text
	s          *script
	steady     bool // of a machine that never stands still
}

func wrong(rule, name, says string, s *script) planted { return planted{rule, name, says, s, false} }

// steadily has a machine that never stands still.
func steadily(all ...planted) []planted {
	for i := range all {
		all[i].steady = true
	}
	return all
}

var plantedViolations = []planted{
	wrong(RuleCause, "broken by nobody", "nobody had broken it",
		begin().lost("1.1", 1, 65, "broken").next()),
	wrong(RuleCause, "released, and broken by nobody", "nobody had broken it",
		begin().call("1.1", Release, 1, 70, 80, Gone).because("broken").next()),
	wrong(RuleCause, "broken before it was", "nobody had broken it",
		begin().lost("1.1", 1, 65, "broken").breaks(1, 85, 95, OK).next()),
	wrong(RuleCause, "reclaimed by nobody, broken by somebody", "nobody had reclaimed it",
		begin().breaks(1, 61, 63, OK).lost("1.1", 1, 65, "reclaimed").next()),
	wrong(RuleCause, "reclaimed for another owner", "nobody had reclaimed it",
		begin().reclaim("3.1", 3, 61, 200, OK).lost("1.1", 1, 65, "reclaimed").next()),
	wrong(RuleCause, "a TTL of nobody", "had no TTL",
		begin().lost("1.1", 1, 65, "ttl_expired").next()),
	wrong(RuleCause, "a TTL that has not passed", "its TTL was 66ms",
		begin().ttl(1, 66).lost("1.1", 1, 65, "ttl_expired").next()),
	wrong(RuleCause, "a TTL, and the clock of another has jumped", "its TTL was 500ms",
		begin().ttl(1, 500).jump("2.1", 600, 20, 25).lost("1.1", 1, 65, "ttl_expired").next()),
	wrong(RuleCause, "a TTL, and the jump was too small", "its TTL was 500ms",
		begin().ttl(1, 500).jump("1.1", 434, 20, 25).lost("1.1", 1, 65, "ttl_expired").next()),
	wrong(RuleCause, "a TTL, and the jump was back", "its TTL was 500ms",
		begin().ttl(1, 500).jump("1.1", -600, 20, 25).lost("1.1", 1, 65, "ttl_expired").next()),
	wrong(RuleCause, "a TTL, and the jump came after the loss", "its TTL was 500ms",
		begin().ttl(1, 500).jump("1.1", 600, 66, 67).lost("1.1", 1, 65, "ttl_expired").next()),
	wrong(RuleCause, "a TTL, and the jump was over before the grant", "its TTL was 500ms",
		begin().ttl(1, 500).jump("1.1", 600, -9, -1).lost("1.1", 1, 65, "ttl_expired").next()),
	wrong(RuleCause, "no cause", "not a known cause",
		begin().lost("1.1", 1, 65, "").next()),
	wrong(RuleFailed, "an acquisition that failed", "invoked at 0.020000 s, failed at 0.090000 s",
		good().call("3.1", Acquire, 0, 20, 90, Failed)),
	wrong(RuleFailed, "a verification that failed", "verify",
		begin().call("1.1", Verify, 1, 45, 50, Failed).release("1.1", 1, 70, 80).next()),
	wrong(RuleExclusion, "two holders", "nobody had broken or reclaimed it",
		begin().held("1.1", 1, 120).release("1.1", 1, 125, 190).next()),
	wrong(RuleExclusion, "two holders at one instant", "two holders from 0.110000 s to 0.110000 s",
		begin().held("1.1", 1, 110).release("1.1", 1, 115, 190).next()),
	wrong(RuleExclusion, "a hold within another", "two holders from 0.110000 s to 0.150000 s",
		begin().held("1.1", 1, 190).release("1.1", 1, 195, 199).next()),
	wrong(RuleExclusion, "the lower token comes second", "two holders",
		good().remove(of(Held, "1.1", 1)).held("1.1", 1, 130).edit(of(Invoke, "1.1", 1), func(r *Record) { r.At += 120 * ms }).edit(of(Return, "1.1", 1), func(r *Record) {
			if r.Call != Acquire {
				r.At += 120 * ms
			}
		})),
	wrong(RuleExclusion, "two holders before the break", "excuses from 0.120000 s",
		begin().held("1.1", 1, 140).breaks(1, 120, 125, OK).next()),
	wrong(RuleExclusion, "a lease after the break", "excuses from 0.085000 s to 0.195000 s only",
		begin().breaks(1, 85, 95, OK).held("1.1", 1, 196).acquire("2.1", 2, 5, 100).held("2.1", 2, 110, 200).
			release("2.1", 2, 300, 310)),
	wrong(RuleExclusion, "a lease after a break that gave up", "to 0.200000 s only",
		begin().breaks(1, 85, 95, GaveUp).held("1.1", 1, 201).acquire("2.1", 2, 5, 100).held("2.1", 2, 110, 250).
			release("2.1", 2, 300, 310)),
	wrong(RuleExclusion, "another token was broken", "nobody had broken",
		begin().breaks(7, 85, 95, OK).held("1.1", 1, 140).next()),
	wrong(RuleExclusion, "another owner reclaimed", "nobody had broken or reclaimed",
		begin().reclaim("3.1", 3, 85, 200, OK).held("1.1", 1, 140).next()),
	wrong(RuleExclusion, "the one that reclaimed had been granted before", "nobody had broken or reclaimed",
		begin().release("1.1", 1, 70, 80).reclaim("3.2", 2, 75, 100, OK).killed("3.2", 101).
			acquire("3.1", 3, 5, 150).held("3.1", 3, 160, 190).acquire("2.1", 4, 6, 170).held("2.1", 4, 180, 240).
			release("2.1", 4, 250, 260)),
	wrong(RuleExclusion, "reclaimed by one that was long dead", "nobody had broken or reclaimed",
		good().reclaim("1.2", 0, 85, 0, "").killed("1.2", 90).acquire("1.1", 3, 200, 210).held("1.1", 3, 220, 300).
			acquire("2.1", 4, 205, 250).held("2.1", 4, 260).release("2.1", 4, 270, 280)),
	wrong(RuleExclusion, "reclaimed by itself", "nobody had broken or reclaimed",
		begin().reclaim("1.1", 3, 85, 200, OK).held("1.1", 1, 140).next()),
	wrong(RuleExclusion, "acquired by its owner without a reclaim", "nobody had broken or reclaimed",
		begin().acquire("1.2", 3, 85, 200).held("1.1", 1, 140).next()),
	wrong(RuleExclusion, "the winner was the one that was broken", "nobody had broken or reclaimed it",
		begin().held("1.1", 1, 120).breaks(2, 105, 108, OK).next()),
	wrong(RuleExclusion, "held after a write was refused", "was refused by the register at 0.130000 s",
		begin().held("1.1", 1, 210).wrote("1.1", 1, 130, false).acquire("2.1", 2, 5, 100).wrote("2.1", 2, 120, true)),
	wrong(RuleTokens, "a token twice", "token 2 was granted twice",
		good().acquire("3.1", 2, 180, 190).held("3.1", 2, 200).release("3.1", 2, 210, 220)),
	wrong(RuleTokens, "a token twice in one process", "token 2 was granted twice",
		good().acquire("2.1", 2, 180, 190)),
	wrong(RuleTokens, "a token falls", "tokens fell",
		begin().release("1.1", 1, 70, 80).acquire("2.1", 5, 5, 100).held("2.1", 5, 110).release("2.1", 5, 120, 130).
			acquire("3.1", 4, 140, 150).held("3.1", 4, 160).release("3.1", 4, 170, 180)),
	wrong(RuleTokens, "a token falls, nobody held", "was granted it with token 5",
		begin().release("1.1", 1, 70, 80).acquire("2.1", 5, 5, 100).acquire("3.1", 4, 140, 150).killed("2.1", 101).
			killed("3.1", 151)),
	wrong(RuleTokens, "a token falls in the order of holds", "was first held it with token 5",
		begin().release("1.1", 1, 70, 80).acquire("2.1", 5, 5, 100).held("2.1", 5, 110).release("2.1", 5, 120, 130).
			acquire("3.1", 4, 6, 150).held("3.1", 4, 160).release("3.1", 4, 170, 180)),
	wrong(RuleTokens, "a broken grant does not excuse a token", "tokens fell",
		begin().breaks(1, 85, 95, OK).acquire("2.1", 5, 5, 100).held("2.1", 5, 110).breaks(5, 120, 130, OK).
			acquire("3.1", 4, 140, 150).held("3.1", 4, 160).release("3.1", 4, 170, 180)),
	wrong(RuleEnded, "held after it was lost", "had ended at 0.050000 s (it had observed the loss: session_expired)",
		begin().lost("1.1", 1, 50, "session_expired")),
	wrong(RuleEnded, "held after its release", "it had been released",
		good().held("1.1", 1, 85)),
	wrong(RuleEnded, "held after a release that goes on", "it had been released",
		begin().call("1.1", Release, 1, 70, 75, Pending).held("1.1", 1, 76).next()),
	wrong(RuleEnded, "held after a verification that failed", "Verify had reported the loss",
		begin().call("1.1", Verify, 1, 45, 50, Gone)),
	wrong(RuleEnded, "verified after its release", "Verify confirmed it",
		good().verify("1.1", 1, 81, 84)),
	wrong(RuleLinearizable, "held when the next was granted, who never looked", `process "1.1", token 1, held it until at least 0.120000 s, and process "2.1", token 2, was granted it by 0.100000 s`,
		begin().held("1.1", 1, 120).acquire("2.1", 2, 5, 100).killed("2.1", 101)),
	wrong(RuleLinearizable, "released when the next had been granted", "held it until at least 0.101000 s",
		begin().release("1.1", 1, 101, 130).next()),
	wrong(RuleLinearizable, "released in the background when the next had been granted", "held it until at least 0.101000 s",
		begin().call("1.1", Release, 1, 101, 105, Pending).next()),
	wrong(RuleLinearizable, "verified after the next was granted", "token 1 is valid",
		begin().verify("1.1", 1, 105, 108).next()),
	wrong(RuleLinearizable, "verified after the break", "token 1 is valid",
		begin().breaks(1, 62, 68, OK).verify("1.1", 1, 69, 71).next()),
	wrong(RuleLinearizable, "verified while the next held", "token 1 is valid",
		begin().breaks(1, 85, 95, GaveUp).verify("1.1", 1, 140, 145).next()),
	wrong(RuleLinearizable, "verified by both", "",
		begin().verify("1.1", 1, 60, 118).acquire("2.1", 2, 5, 120).held("2.1", 2, 125).release("2.1", 2, 130, 131).
			call("1.1", Release, 1, 119, 122, Pending).acquire("3.1", 3, 10, 117).killed("3.1", 118)),
	wrong(RuleLinearizable, "granted before the end, without a look", "held it until at least 0.060000 s",
		begin().acquire("2.1", 2, 5, 50).killed("2.1", 51)),
	wrong(RuleSettle, "never returned", "had not returned at the end",
		good().call("3.1", Acquire, 0, 200, 0, "")),
	wrong(RuleSettle, "never returned, invoked at the end", "had not returned at the end",
		good().call("3.1", Verify, 2, 899, 0, "").acquire("3.1", 2, 180, 190).remove(of(Return, "3.1", 2)).
			edit(of(Invoke, "3.1", 2), func(r *Record) { r.Process, r.At = "2.1", 899*ms })),
	wrong(RuleSettle, "returned too late", "acquire must be over 200ms after 0.500000 s",
		good().acquire("3.1", 3, 180, 701).held("3.1", 3, 702).release("3.1", 3, 710, 720)),
	wrong(RuleSettle, "gave up too late", "acquire must be over 200ms after 0.600000 s",
		good().call("3.1", Acquire, 0, 600, 801, GaveUp)),
	wrong(RuleSettle, "killed when it should have been over", "ended with its process at 0.800000 s",
		good().call("3.1", Acquire, 0, 200, 0, "").killed("3.1", 800)),
	wrong(RuleHistory, "held without a grant", "held, with token 4, which it was not granted",
		good().held("4.1", 4, 300)),
	wrong(RuleHistory, "held before the grant", "before it was granted",
		good().held("2.1", 2, 99)),
	wrong(RuleHistory, "verified before the grant", "before it was granted",
		good().verify("2.1", 2, 99, 101)),
	wrong(RuleHistory, "released by a stranger", "release, with token 2, which it was not granted",
		good().release("4.1", 2, 180, 190)),
	wrong(RuleHistory, "written by a stranger", "it wrote with token 4 before it was granted",
		good().wrote("4.1", 4, 300, true)),
	wrong(RuleHistory, "written before the grant", "it wrote with token 3 before it was granted",
		good().wrote("3.1", 3, 179, true).acquire("3.1", 3, 180, 190)),
	wrong(RuleHistory, "a return without an invoke", "without having been invoked",
		good().add(300, Record{What: Return, Process: "1.1", Op: 77, Call: Try, Outcome: Refused})),
	wrong(RuleHistory, "two returns", "two records of return",
		good().add(300, Record{What: Return, Process: "1.1", Op: 1, Call: Acquire, Outcome: OK, Token: 1})),
	wrong(RuleHistory, "time runs backwards", "before it was invoked",
		good().call("3.1", Try, 0, 300, 299, Refused)),
	wrong(RuleHistory, "a return of something else", "was invoked as try",
		good().call("3.1", Try, 0, 300, 301, Refused).
			edit(func(r *Record) bool { return r.Call == Try && r.What == Return }, func(r *Record) { r.Call = Acquire })),
	wrong(RuleHistory, "no token", "granted without a token",
		good().acquire("3.1", 0, 300, 301).killed("3.1", 302)),
	wrong(RuleHistory, "a process that is dead", "the process was gone at 0.165000 s",
		good().killed("2.1", 165)),
}

// crowd is a history of another key, without a violation: a hundred holds, one after the other.
func crowd() []Record {
	s := &script{}
	for i := range int64(100) {
		process, token, at := fmt.Sprintf("7.%d", i), uint64(i+1), 4*i
		s.acquire(process, token, at, at+1).held(process, token, at+1).verify(process, token, at+1, at+2)
		s.release(process, token, at+2, at+3)
	}
	for i := range s.records {
		s.records[i].Key = "other"
	}
	return s.records
}

// TestPlantedViolations guards that a check finds each violation, names the rule, and reports nothing else: alone, and among
// much that is right, in whatever order the records are given.
func TestPlantedViolations(t *testing.T) {
	for _, c := range slices.Concat(plantedViolations, plantedReclaims, plantedTerms, plantedTellings, plantedSharing, plantedAsks, plantedCloses, plantedSteadily) {
		t.Run(c.name, func(t *testing.T) {
			records := slices.Concat(c.s.records, (&script{}).calm().records)
			judged(t, c, records)
			records = append(records, crowd()...)
			rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
			judged(t, c, records)
		})
	}
}

func judged(t *testing.T, c planted, records []Record) {
	t.Helper()
	rules := scriptRules
	rules.Steady = c.steady
	found := Check(records, rules)
	said := false
	for _, v := range found {
		if v.Rule != c.rule || v.From > v.To {
			t.Errorf("from %d to %d, rule %s, want %s: %v", v.From, v.To, v.Rule, c.rule, v)
		}
		said = said || strings.Contains(v.Text, c.says)
	}
	if !said {
		t.Errorf("nothing of %v says %q", found, c.says)
	}
}

// TestEmpty guards that a history that shows nothing does not pass.
func TestEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		records []Record
		rules   Rules
		says    string // the only violation; "": none
	}{
		"no records":               {nil, Rules{}, "nothing was tested"},
		"nobody held":              {(&script{}).call("1.1", Acquire, 0, 10, 20, GaveUp).calm().records, scriptRules, "nothing was tested"},
		"no calm":                  {good().records, scriptRules, "no record of calm"},
		"no calm, nobody asks for": {good().records, Rules{Lease: time.Second}, ""},
	} {
		switch found := Check(c.records, c.rules); {
		case c.says == "" && len(found) == 0:
		case c.says == "" || len(found) != 1 || found[0].Rule != RuleHistory || !strings.Contains(found[0].Text, c.says):
			t.Errorf("%s: %v, want %q", name, found, c.says)
		}
	}
}

// TestTooManyViolations guards that the findings on a thoroughly wrong history stay readable.
func TestTooManyViolations(t *testing.T) {
	s := good()
	for i := range int64(50) {
		s.held("8.1", 8, 300+i)
	}
	found := Check(s.calm().records, scriptRules)
	if len(found) != MostPerRule+1 || found[MostPerRule].Text != "and 30 more" {
		t.Errorf("%d violations, the last: %v", len(found), found[len(found)-1])
	}
}

// TestSteady guards that, on a machine that never stands still, a lease runs out only for a fault of the time before.
func TestSteady(t *testing.T) {
	lease := int64(scriptRules.Lease / time.Millisecond)
	faultOf := func(kind string, from, to int64) *script {
		return begin().add(from, Record{What: Begin, N: 1, Fault: kind, Target: "client 1, a wire"}).add(to, Record{What: End, N: 1, Fault: kind})
	}
	fault := func(from, to int64) *script { return faultOf("stall", from, to) }
	halfOpen := func(other, target string) *script {
		return faultOf("half open", 50, 60).
			add(40, Record{What: Begin, N: 2, Fault: other, Target: target}).add(55, Record{What: End, N: 2, Fault: other})
	}
	for name, c := range map[string]struct {
		s       *script
		cause   string
		excused bool
	}{
		"a fault meanwhile":   {fault(50, 60), "session_expired", true},
		"a fault before":      {fault(-lease, 10-lease), "lease_expired", true},
		"a fault long ago":    {fault(-9*lease, -5-2*lease), "session_expired", false},
		"a fault later":       {fault(70, 75), "lease_expired", false},
		"another cause":       {begin(), "clock_jump", true},
		"taken over":          {begin(), "taken_over", false},
		"by one who broke it": {begin().breaks(1, 61, 63, OK), "taken_over", true},
		"no fault":            {begin(), "lease_expired", false},
		"one of no weight":    {faultOf("lost reply", 50, 60), "lease_expired", false},
		"one that is alone":   {faultOf("half open", 50, 60), "lease_expired", false},
		"both at one client":  {halfOpen("lost reply", "client 1, the next list"), "lease_expired", true},
		"one at each of two":  {halfOpen("lost reply", "client 2, the next list"), "lease_expired", false},
	} {
		rules := scriptRules
		records := c.s.lost("1.1", 1, 65, c.cause).next().calm().records
		if found := Check(records, rules); len(found) > 0 {
			t.Errorf("%s, on a machine that may stand still: %v", name, found)
		}
		rules.Steady, rules.Endured, rules.Singly = true, []string{"lost reply", "half open"}, []string{"half open"}
		switch found := Check(records, rules); {
		case c.excused && len(found) == 0:
		case c.excused || len(found) != 1 || found[0].Rule != RuleCause || !strings.Contains(found[0].Text, "had been wrong since"):
			t.Errorf("%s: %v", name, found)
		}
	}
}

// Where grants have no lease, who is cut off believes in one that was broken until it hears of that, and nothing else excuses it.
func TestEndless(t *testing.T) {
	endless := scriptRules
	endless.Endless = true
	found := func(rules Rules, s *script) bool {
		s.held("1.1", 1, 140, 300).lost("1.1", 1, 301, "broken").next()
		return slices.ContainsFunc(Check(s.calm().records, rules), func(v Violation) bool { return v.Rule == RuleExclusion })
	}
	if !found(scriptRules, begin().breaks(1, 25, 30, OK)) {
		t.Error("two holders, a lease after one was broken: not found")
	}
	if found(endless, begin().breaks(1, 25, 30, OK)) {
		t.Error("two holders, after one was broken that has no lease: a violation")
	}
	if !found(endless, begin()) {
		t.Error("two holders, none was broken, and there is no lease: not found")
	}
}
