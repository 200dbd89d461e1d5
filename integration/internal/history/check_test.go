package history

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAcquitted guards what a lock may do: histories in which every excuse and every open outcome occurs have no
// violation.
func TestAcquitted(t *testing.T) {
	for name, s := range map[string]*script{
		"two holds":                         good(),
		"released in the background":        begin().call("1.1", Release, 1, 70, 75, Pending).next(),
		"released, and never confirmed":     begin().call("1.1", Release, 1, 70, 0, "").killed("1.1", 300).next(),
		"killed":                            begin().killed("1.1", 65).next(),
		"killed while it waited":            begin().release("1.1", 1, 70, 80).call("3.1", Acquire, 0, 20, 0, "").killed("3.1", 90).next(),
		"session expired":                   begin().lost("1.1", 1, 65, "ErrSessionExpired").call("1.1", Release, 1, 70, 80, Gone).next(),
		"TTL":                               begin().ttl(1, 50).lost("1.1", 1, 61, "ErrTTLExpired").call("1.1", Release, 1, 90, 99, Gone).next(),
		"TTL, after a jump":                 begin().ttl(1, 500).jump("1.1", 440, 50, 60).lost("1.1", 1, 61, "ErrTTLExpired").next(),
		"TTL, in a jump":                    begin().ttl(1, 500).jump("1.1", 440, 60, 70).lost("1.1", 1, 61, "ErrTTLExpired").next(),
		"TTL, after a jump at the grant":    begin().ttl(1, 500).jump("1.1", 440, -5, 1).lost("1.1", 1, 61, "ErrTTLExpired").next(),
		"TTL, after two jumps":              begin().ttl(1, 500).jump("1.1", 400, 5, 6).jump("1.1", -90, 7, 8).jump("1.1", 40, 50, 51).lost("1.1", 1, 61, "ErrTTLExpired").next(),
		"TTL, killed in a jump":             begin().ttl(1, 500).jump("1.1", 440, 60, 0).lost("1.1", 1, 61, "ErrTTLExpired").killed("1.1", 62).next(),
		"gave up":                           good().call("3.1", Acquire, 0, 20, 90, GaveUp),
		"tried in vain":                     good().call("3.1", Try, 0, 85, 90, Refused),
		"told too late":                     begin().release("1.1", 1, 70, 80).acquire("3.1", 2, 15, 300).lost("3.1", 2, 301, "ErrSessionExpired").acquire("2.1", 3, 90, 160).held("2.1", 3, 170, 180).release("2.1", 3, 190, 200),
		"told of while it was broken":       begin().release("1.1", 1, 70, 80).acquire("3.1", 2, 15, 140).breaks(2, 85, 95, OK).acquire("2.1", 3, 20, 100).held("2.1", 3, 110, 160).held("3.1", 2, 145, 155).lost("3.1", 2, 156, "ErrBroken").release("2.1", 3, 200, 210),
		"broken":                            begin().breaks(1, 85, 95, OK).held("1.1", 1, 140, 190).lost("1.1", 1, 191, "ErrBroken").next(),
		"broken, and nobody knows":          begin().breaks(1, 85, 95, GaveUp).held("1.1", 1, 140, 199).lost("1.1", 1, 200, "ErrBroken").next(),
		"broken by a request sent twice":    begin().breaks(1, 85, 99, Gone).held("1.1", 1, 140).lost("1.1", 1, 145, "ErrBroken").next(),
		"broken, verified before":           begin().breaks(1, 85, 95, OK).verify("1.1", 1, 80, 90).held("1.1", 1, 120).call("1.1", Verify, 1, 121, 130, Gone).next(),
		"reclaimed":                         begin().reclaim("1.2", 2, 85, 100, OK).held("1.2", 2, 110, 150).held("1.1", 1, 140).lost("1.1", 1, 141, "ErrReclaimed").release("1.2", 2, 160, 170),
		"reclaimed, another is next":        begin().reclaim("1.2", 3, 85, 180, OK).held("1.2", 3, 190).held("1.1", 1, 140).lost("1.1", 1, 141, "ErrReclaimed").next().release("1.2", 3, 200, 210),
		"reclaimed by one that was killed":  begin().reclaim("1.2", 0, 85, 0, "").killed("1.2", 90).held("1.1", 1, 140).lost("1.1", 1, 141, "ErrReclaimed").next(),
		"a write that comes late":           good().wrote("1.1", 1, 300, false),
		"broken, a write is refused":        begin().breaks(1, 85, 95, OK).wrote("1.1", 1, 130, false).held("1.1", 1, 135).lost("1.1", 1, 140, "ErrBroken").next(),
		"unfenced, going back":              good().add(300, Record{What: Wrote, Process: "1.1", Token: 1}).add(301, Record{What: Wrote, Process: "2.1", Token: 2}).add(302, Record{What: Wrote, Process: "1.1", Token: 1}),
		"looked and released at once":       begin().held("1.1", 1, 75).release("1.1", 1, 70, 80).next(),
		"written by one that told no more":  good().acquire("5.1", 3, 200, 210).wrote("6.1", 9, 230, true).killed("6.1", 231).killed("5.1", 220),
		"waits until all is calm":           good().acquire("3.1", 3, 180, 690).held("3.1", 3, 691).release("3.1", 3, 692, 693),
		"another key, at the same time":     good().add(20, Record{What: Invoke, Process: "3.1", Key: "other", Call: Acquire, Op: 99}).add(25, Record{What: Return, Process: "3.1", Key: "other", Call: Acquire, Op: 99, Outcome: OK, Token: 1}).add(50, Record{What: Held, Process: "3.1", Key: "other", Token: 1}),
		"one process, one key after itself": good().acquire("1.1", 3, 180, 190).held("1.1", 3, 200).release("1.1", 3, 210, 220),
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
	name string
	s    *script
	rule string
	says string // a part of its text
}

var plantedViolations = []planted{
	{
		"broken by nobody", begin().lost("1.1", 1, 65, "ErrBroken").next(),
		RuleCause, "nobody had broken it",
	},
	{
		"broken before it was", begin().lost("1.1", 1, 65, "ErrBroken").breaks(1, 85, 95, OK).next(),
		RuleCause, "nobody had broken it",
	},
	{
		"reclaimed by nobody, broken by somebody", begin().breaks(1, 61, 63, OK).lost("1.1", 1, 65, "ErrReclaimed").next(),
		RuleCause, "nobody had reclaimed it",
	},
	{
		"reclaimed for another owner", begin().reclaim("3.1", 3, 61, 200, OK).lost("1.1", 1, 65, "ErrReclaimed").next(),
		RuleCause, "nobody had reclaimed it",
	},
	{
		"a TTL of nobody", begin().lost("1.1", 1, 65, "ErrTTLExpired").next(),
		RuleCause, "had no TTL",
	},
	{
		"a TTL that has not passed", begin().ttl(1, 66).lost("1.1", 1, 65, "ErrTTLExpired").next(),
		RuleCause, "its TTL was 66ms",
	},
	{
		"a TTL, and the clock of another has jumped", begin().ttl(1, 500).jump("2.1", 600, 20, 25).lost("1.1", 1, 65, "ErrTTLExpired").next(),
		RuleCause, "its TTL was 500ms",
	},
	{
		"a TTL, and the jump was too small", begin().ttl(1, 500).jump("1.1", 434, 20, 25).lost("1.1", 1, 65, "ErrTTLExpired").next(),
		RuleCause, "its TTL was 500ms",
	},
	{
		"a TTL, and the jump was back", begin().ttl(1, 500).jump("1.1", -600, 20, 25).lost("1.1", 1, 65, "ErrTTLExpired").next(),
		RuleCause, "its TTL was 500ms",
	},
	{
		"a TTL, and the jump came after the loss", begin().ttl(1, 500).jump("1.1", 600, 66, 67).lost("1.1", 1, 65, "ErrTTLExpired").next(),
		RuleCause, "its TTL was 500ms",
	},
	{
		"a TTL, and the jump was over before the grant", begin().ttl(1, 500).jump("1.1", 600, -9, -1).lost("1.1", 1, 65, "ErrTTLExpired").next(),
		RuleCause, "its TTL was 500ms",
	},
	{
		"no cause", begin().lost("1.1", 1, 65, "").next(),
		RuleCause, "not a known cause",
	},
	{
		"an acquisition that failed", good().call("3.1", Acquire, 0, 20, 90, Failed),
		RuleFailed, "invoked at 0.020000 s, failed at 0.090000 s",
	},
	{
		"a verification that failed", begin().call("1.1", Verify, 1, 45, 50, Failed).release("1.1", 1, 70, 80).next(),
		RuleFailed, "verify",
	},
	{
		"two holders", begin().held("1.1", 1, 120).release("1.1", 1, 125, 190).next(),
		RuleExclusion, "nobody had broken or reclaimed it",
	},
	{
		"two holders at one instant", begin().held("1.1", 1, 110).release("1.1", 1, 115, 190).next(),
		RuleExclusion, "two holders from 0.110000 s to 0.110000 s",
	},
	{
		"a hold within another", begin().held("1.1", 1, 190).release("1.1", 1, 195, 199).next(),
		RuleExclusion, "two holders from 0.110000 s to 0.150000 s",
	},
	{
		"the lower token comes second", good().remove(of(Held, "1.1", 1)).held("1.1", 1, 130).edit(of(Invoke, "1.1", 1), func(r *Record) { r.At += 120 * ms }).edit(of(Return, "1.1", 1), func(r *Record) {
			if r.Call != Acquire {
				r.At += 120 * ms
			}
		}),
		RuleExclusion, "two holders",
	},
	{
		"two holders before the break", begin().held("1.1", 1, 140).breaks(1, 120, 125, OK).next(),
		RuleExclusion, "excuses from 0.120000 s",
	},
	{
		"a lease after the break", begin().breaks(1, 85, 95, OK).held("1.1", 1, 196).acquire("2.1", 2, 5, 100).held("2.1", 2, 110, 200).release("2.1", 2, 300, 310),
		RuleExclusion, "excuses from 0.085000 s to 0.195000 s only",
	},
	{
		"a lease after a break that gave up", begin().breaks(1, 85, 95, GaveUp).held("1.1", 1, 201).acquire("2.1", 2, 5, 100).held("2.1", 2, 110, 250).release("2.1", 2, 300, 310),
		RuleExclusion, "to 0.200000 s only",
	},
	{
		"another token was broken", begin().breaks(7, 85, 95, OK).held("1.1", 1, 140).next(),
		RuleExclusion, "nobody had broken",
	},
	{
		"another owner reclaimed", begin().reclaim("3.1", 3, 85, 200, OK).held("1.1", 1, 140).next(),
		RuleExclusion, "nobody had broken or reclaimed",
	},
	{
		"the one that reclaimed had been granted before",
		begin().release("1.1", 1, 70, 80).reclaim("3.2", 2, 75, 100, OK).killed("3.2", 101).acquire("3.1", 3, 5, 150).held("3.1", 3, 160, 190).
			acquire("2.1", 4, 6, 170).held("2.1", 4, 180, 240).release("2.1", 4, 250, 260),
		RuleExclusion, "nobody had broken or reclaimed",
	},
	{
		"reclaimed by itself", begin().reclaim("1.1", 3, 85, 200, OK).held("1.1", 1, 140).next(),
		RuleExclusion, "nobody had broken or reclaimed",
	},
	{
		"acquired by its owner without a reclaim", begin().acquire("1.2", 3, 85, 200).held("1.1", 1, 140).next(),
		RuleExclusion, "nobody had broken or reclaimed",
	},
	{
		"the winner was the one that was broken", begin().held("1.1", 1, 120).breaks(2, 105, 108, OK).next(),
		RuleExclusion, "nobody had broken or reclaimed it",
	},
	{
		"held after a write was refused",
		begin().held("1.1", 1, 210).wrote("1.1", 1, 130, false).acquire("2.1", 2, 5, 100).wrote("2.1", 2, 120, true),
		RuleExclusion, "was refused by the register at 0.130000 s",
	},
	{
		"a token twice", good().acquire("3.1", 2, 180, 190).held("3.1", 2, 200).release("3.1", 2, 210, 220),
		RuleTokens, "token 2 was granted twice",
	},
	{
		"a token twice in one process", good().acquire("2.1", 2, 180, 190),
		RuleTokens, "token 2 was granted twice",
	},
	{
		"a token falls", begin().release("1.1", 1, 70, 80).acquire("2.1", 5, 5, 100).held("2.1", 5, 110).release("2.1", 5, 120, 130).acquire("3.1", 4, 140, 150).held("3.1", 4, 160).release("3.1", 4, 170, 180),
		RuleTokens, "tokens fell",
	},
	{
		"a token falls, nobody held", begin().release("1.1", 1, 70, 80).acquire("2.1", 5, 5, 100).acquire("3.1", 4, 140, 150).killed("2.1", 101).killed("3.1", 151),
		RuleTokens, "was granted it with token 5",
	},
	{
		"a token falls in the order of holds", begin().release("1.1", 1, 70, 80).acquire("2.1", 5, 5, 100).held("2.1", 5, 110).release("2.1", 5, 120, 130).acquire("3.1", 4, 6, 150).held("3.1", 4, 160).release("3.1", 4, 170, 180),
		RuleTokens, "was first held it with token 5",
	},
	{
		"a broken grant does not excuse a token", begin().breaks(1, 85, 95, OK).acquire("2.1", 5, 5, 100).held("2.1", 5, 110).breaks(5, 120, 130, OK).acquire("3.1", 4, 140, 150).held("3.1", 4, 160).release("3.1", 4, 170, 180),
		RuleTokens, "tokens fell",
	},
	{
		"the register goes back", good().wrote("1.1", 1, 300, true),
		RuleFence, "the register went back: it accepted token 1",
	},
	{
		"the register refuses a good token", good().wrote("2.1", 2, 145, false),
		RuleFence, "refused a token that was not too low",
	},
	{
		"the register refuses the first token", begin().edit(of(Wrote, "1.1", 1), func(r *Record) { r.Accepted = false }),
		RuleFence, "refused a token that was not too low",
	},
	{
		"held after it was lost", begin().lost("1.1", 1, 50, "ErrSessionExpired"),
		RuleEnded, "had ended at 0.050000 s (it had observed the loss: ErrSessionExpired)",
	},
	{
		"held after its release", good().held("1.1", 1, 85),
		RuleEnded, "it had been released",
	},
	{
		"held after a release that goes on", begin().call("1.1", Release, 1, 70, 75, Pending).held("1.1", 1, 76).next(),
		RuleEnded, "it had been released",
	},
	{
		"held after a verification that failed", begin().call("1.1", Verify, 1, 45, 50, Gone),
		RuleEnded, "Verify had reported the loss",
	},
	{
		"verified after its release", good().verify("1.1", 1, 81, 84),
		RuleEnded, "Verify confirmed it",
	},
	{
		"held when the next was granted, who never looked", begin().held("1.1", 1, 120).acquire("2.1", 2, 5, 100).killed("2.1", 101),
		RuleLinearizable, `process "1.1", token 1, held it until at least 0.120000 s, and process "2.1", token 2, was granted it by 0.100000 s`,
	},
	{
		"released when the next had been granted", begin().release("1.1", 1, 101, 130).next(),
		RuleLinearizable, "held it until at least 0.101000 s",
	},
	{
		"verified after the next was granted", begin().verify("1.1", 1, 105, 108).next(),
		RuleLinearizable, "token 1 is valid",
	},
	{
		"verified after the break", begin().breaks(1, 62, 68, OK).verify("1.1", 1, 69, 71).next(),
		RuleLinearizable, "token 1 is valid",
	},
	{
		"verified while the next held", begin().breaks(1, 85, 95, GaveUp).verify("1.1", 1, 140, 145).next(),
		RuleLinearizable, "token 1 is valid",
	},
	{
		"verified by both", begin().verify("1.1", 1, 60, 118).acquire("2.1", 2, 5, 120).held("2.1", 2, 125).release("2.1", 2, 130, 131).call("1.1", Release, 1, 119, 122, Pending).acquire("3.1", 3, 10, 117).killed("3.1", 118),
		RuleLinearizable, "",
	},
	{
		"granted before the end, without a look", begin().acquire("2.1", 2, 5, 50).killed("2.1", 51),
		RuleLinearizable, "held it until at least 0.060000 s",
	},
	{
		"never returned", good().call("3.1", Acquire, 0, 200, 0, ""),
		RuleSettle, "had not returned at the end",
	},
	{
		"never returned, invoked at the end", good().call("3.1", Verify, 2, 899, 0, "").acquire("3.1", 2, 180, 190).remove(of(Return, "3.1", 2)).edit(of(Invoke, "3.1", 2), func(r *Record) { r.Process, r.At = "2.1", 899*ms }),
		RuleSettle, "had not returned at the end",
	},
	{
		"returned too late", good().acquire("3.1", 3, 180, 701).held("3.1", 3, 702).release("3.1", 3, 710, 720),
		RuleSettle, "acquire must be over 200ms after 0.500000 s",
	},
	{
		"gave up too late", good().call("3.1", Acquire, 0, 600, 801, GaveUp),
		RuleSettle, "acquire must be over 200ms after 0.600000 s",
	},
	{
		"killed when it should have been over", good().call("3.1", Acquire, 0, 200, 0, "").killed("3.1", 800),
		RuleSettle, "ended with its process at 0.800000 s",
	},
	{
		"held without a grant", good().held("4.1", 4, 300),
		RuleHistory, "held, with token 4, which it was not granted",
	},
	{
		"held before the grant", good().held("2.1", 2, 99),
		RuleHistory, "before it was granted",
	},
	{
		"verified before the grant", good().verify("2.1", 2, 99, 101),
		RuleHistory, "before it was granted",
	},
	{
		"released by a stranger", good().release("4.1", 2, 180, 190),
		RuleHistory, "release, with token 2, which it was not granted",
	},
	{
		"written by a stranger", good().wrote("4.1", 4, 300, true),
		RuleHistory, "it wrote with token 4, which it was not granted",
	},
	{
		"written before the grant", good().wrote("3.1", 3, 179, true).acquire("3.1", 3, 180, 190),
		RuleHistory, "written before it was granted",
	},
	{
		"a return without an invoke", good().add(300, Record{What: Return, Process: "1.1", Op: 77, Call: Try, Outcome: Refused}),
		RuleHistory, "without having been invoked",
	},
	{
		"two returns", good().add(300, Record{What: Return, Process: "1.1", Op: 1, Call: Acquire, Outcome: OK, Token: 1}),
		RuleHistory, "two records of return",
	},
	{
		"time runs backwards", good().call("3.1", Try, 0, 300, 299, Refused),
		RuleHistory, "before it was invoked",
	},
	{
		"a return of something else", good().call("3.1", Try, 0, 300, 301, Refused).edit(func(r *Record) bool { return r.Call == Try && r.What == Return }, func(r *Record) { r.Call = Acquire }),
		RuleHistory, "was invoked as try",
	},
	{
		"no token", good().acquire("3.1", 0, 300, 301).killed("3.1", 302),
		RuleHistory, "granted without a token",
	},
	{
		"a call that does not exist", good().call("3.1", "acquired", 0, 300, 301, OK),
		RuleHistory, `no call "acquired"`,
	},
	{
		"an outcome that does not exist", good().call("3.1", Acquire, 3, 300, 301, "fine"),
		RuleHistory, `no outcome "fine"`,
	},
	{
		"a kind that does not exist", good().add(300, Record{What: "holds", Process: "1.1", Token: 1}),
		RuleHistory, "no such kind",
	},
	{
		"a fault that did not begin", good().add(300, Record{What: End, N: 3}),
		RuleHistory, "never began",
	},
	{
		"a process that is dead", good().killed("2.1", 165),
		RuleHistory, "the process was gone at 0.165000 s",
	},
	{
		"calm twice", good().add(450, Record{What: Calm}),
		RuleHistory, "a second record of calm",
	},
	{
		"nobody held", (&script{}).call("1.1", Acquire, 0, 10, 20, GaveUp),
		RuleHistory, "nothing was tested",
	},
}

// TestPlantedViolations guards that a check finds each violation, names the rule, and reports nothing else.
func TestPlantedViolations(t *testing.T) {
	for _, c := range plantedViolations {
		t.Run(c.name, func(t *testing.T) {
			found := Check(c.s.calm().records, scriptRules)
			if len(found) == 0 {
				t.Fatal("nothing found")
			}
			said := false
			for _, v := range found {
				t.Log(v)
				if v.Rule != c.rule {
					t.Errorf("rule %s, want %s", v.Rule, c.rule)
				}
				said = said || strings.Contains(v.Text, c.says)
				if v.From > v.To || len(v.Processes) != len(v.Tokens) {
					t.Errorf("from %d to %d, processes %q, tokens %d", v.From, v.To, v.Processes, v.Tokens)
				}
			}
			if !said {
				t.Errorf("nothing says %q", c.says)
			}
		})
	}
}

// TestEmpty guards that a history that shows nothing does not pass.
func TestEmpty(t *testing.T) {
	found := Check(nil, scriptRules)
	if len(found) == 0 || slices.ContainsFunc(found, func(v Violation) bool { return v.Rule != RuleHistory }) {
		t.Errorf("of no records: %v", found)
	}
	if found := Check(good().records, scriptRules); len(found) != 1 || !strings.Contains(found[0].Text, "no record of calm") {
		t.Errorf("of a history without calm: %v", found)
	}
	if found := Check(good().records, Rules{Lease: time.Second}); len(found) != 0 {
		t.Errorf("of the same, where nobody asks for calm: %v", found)
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
