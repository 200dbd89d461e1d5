package history

import "testing"

// heir is a hold of process 1.2, of the owner of process 1.1, with token 2: from 110 to 150. It was waited for.
func (s *script) heir() *script {
	return s.acquire("1.2", 2, 5, 100).held("1.2", 2, 110, 150).release("1.2", 2, 160, 170)
}

// claims is the same by a reclaim that is invoked at a time.
func (s *script) claims(at int64) *script {
	return s.reclaim("1.2", 2, at, 100, OK).held("1.2", 2, 110, 150).release("1.2", 2, 160, 170)
}

// TestAcquittedReclaims guards what may come of a lock where other processes have the same owner.
func TestAcquittedReclaims(t *testing.T) {
	for name, s := range map[string]*script{
		"reclaimed by a late request of one that gave up":   begin().reclaim("1.2", 0, -5, 15, GaveUp).held("1.1", 1, 140).lost("1.1", 1, 141, "broken").next(),
		"reclaimed by one that gave up just then":           begin().reclaim("1.2", 0, -5, 0, GaveUp).held("1.1", 1, 140).lost("1.1", 1, 141, "broken").next(),
		"reclaimed, as the release learns":                  begin().call("1.1", Release, 1, 70, 80, Gone).because("reclaimed").claims(75),
		"reclaimed, which the release takes for a break":    begin().call("1.1", Release, 1, 70, 80, Gone).because("broken").claims(75),
		"taken over under the same owner":                   begin().lost("1.1", 1, 105, "reclaimed").heir(),
		"taken over under the same owner, and not yet told": begin().lost("1.1", 1, 65, "reclaimed").heir(),
		"taken over by one that was killed":                 begin().asks("1.2", 0, 5, 0, "").killed("1.2", 90).lost("1.1", 1, 65, "reclaimed").next(),
		"taken over by one that gave up":                    begin().asks("1.2", 0, -5, 15, GaveUp).lost("1.1", 1, 65, "reclaimed").next(),
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range Check(s.calm().records, scriptRules) {
				t.Error(v)
			}
		})
	}
}

// TestNamesakesThatCanBeTold guards that where a holder can tell who has reclaimed its lock, it does.
func TestNamesakesThatCanBeTold(t *testing.T) {
	rules := scriptRules
	rules.Namesakes = false
	found := Check(begin().lost("1.1", 1, 105, "reclaimed").heir().calm().records, rules)
	if len(found) != 1 || found[0].Rule != RuleCause {
		t.Errorf("%v, want one complaint of the cause", found)
	}
	for _, v := range Check(begin().call("1.1", Release, 1, 70, 80, Gone).because("reclaimed").claims(75).calm().records, rules) {
		t.Error(v)
	}
}

var plantedReclaims = []planted{
	wrong(RuleCause, "reclaimed by one that had given up", "nobody had reclaimed it",
		begin().reclaim("1.2", 0, -20, -5, GaveUp).lost("1.1", 1, 65, "reclaimed").next()),
	wrong(RuleCause, "broken, and who reclaims had given up", "nobody had broken it",
		begin().reclaim("1.2", 0, -20, -5, GaveUp).lost("1.1", 1, 65, "broken").next()),
	wrong(RuleExclusion, "two holders, and who reclaims had given up", "nobody had broken or reclaimed it",
		begin().reclaim("1.2", 0, -20, -5, GaveUp).held("1.1", 1, 120).release("1.1", 1, 125, 190).next()),
	wrong(RuleCause, "reclaimed when its release had returned", "nobody had broken it",
		begin().call("1.1", Release, 1, 70, 80, Gone).because("broken").claims(81)),
	wrong(RuleCause, "lost, and reclaimed while it was released", "nobody had broken it",
		begin().lost("1.1", 1, 65, "broken").call("1.1", Release, 1, 70, 80, Gone).claims(75)),
	wrong(RuleCause, "taken over under another owner", "nobody had reclaimed it",
		begin().lost("1.1", 1, 105, "reclaimed").next()),
	wrong(RuleCause, "taken over by the same process", "nobody had reclaimed it",
		begin().lost("1.1", 1, 105, "reclaimed").acquire("1.1", 2, 5, 100).held("1.1", 2, 110).release("1.1", 2, 160, 170)),
	wrong(RuleCause, "an operator who gave up had named its owner", "nobody had reclaimed it",
		begin().breaks(1, 61, 63, GaveUp).edit(func(r *Record) bool { return r.Call == Break }, func(r *Record) { r.Owner = "1" }).lost("1.1", 1, 65, "reclaimed").next()),
	wrong(RuleCause, "its owner asked for it later", "nobody had reclaimed it",
		begin().lost("1.1", 1, 65, "reclaimed").acquire("1.2", 2, 66, 100).held("1.2", 2, 110).release("1.2", 2, 160, 170)),
	wrong(RuleCause, "its owner had it before", "nobody had reclaimed it",
		(&script{}).hold("1.2", 1, 5, 40).acquire("1.1", 2, 0, 50).held("1.1", 2, 55, 60).lost("1.1", 2, 65, "reclaimed").hold("2.1", 3, 100, 150)),
	wrong(RuleCause, "its owner had given up before", "nobody had reclaimed it",
		begin().asks("1.2", 0, -20, -5, GaveUp).lost("1.1", 1, 65, "reclaimed").next()),
	wrong(RuleCause, "its owner took over another key", "nobody had reclaimed it",
		begin().lost("1.1", 1, 105, "reclaimed").next().asks("1.2", 2, 5, 100, OK).edit(func(r *Record) bool { return r.Process == "1.2" }, func(r *Record) { r.Key = "other key" })),
}
