package history

import (
	"slices"
	"strconv"
	"testing"
)

// hold is a hold that is released.
func (s *script) hold(process string, token uint64, from, to int64) *script {
	return s.acquire(process, token, from, from+5).held(process, token, from+6, to-6).verify(process, token, from+7, from+9).
		release(process, token, to-5, to)
}

// together are two holds at the same time, by tokens 1 and 2, and then one by token 3.
func together() *script {
	return (&script{}).hold("1.1", 1, 0, 100).hold("2.1", 2, 20, 120).hold("3.1", 3, 130, 160)
}

// crowded are n holds at the same time, by tokens from 1 on.
func crowded(n int) *script {
	s := &script{}
	for i := range n {
		s.hold(strconv.Itoa(i+1)+".1", uint64(i+1), int64(20*i), int64(200+20*i))
	}
	return s
}

// audit has n tries for a key when all is quiet, at 600: the first are granted by tokens from 100 on, the others refused.
func (s *script) audit(n, granted int, m Mode) *script {
	s.add(600, Record{What: Quiet})
	for i := range n {
		at, outcome, token := int64(610+10*i), OK, uint64(100+i)
		if i >= granted {
			outcome, token = Refused, 0
		}
		s.call("9.1", Try, token, at, at+5, outcome)
		op := s.op
		s.edit(func(r *Record) bool { return r.What == Invoke && r.Op == op }, func(r *Record) { r.Mode = m })
	}
	for i := range granted {
		s.release("9.1", uint64(100+i), int64(700+10*i), int64(705+10*i))
	}
	return s
}

// tells has the observer of the last observation told of grants that are held together. The owner of a token is its first
// digit.
func (s *script) tells(at int64, m Mode, tokens ...uint64) *script {
	observation := s.records[slices.IndexFunc(s.records, func(r Record) bool { return r.Call == Observe })]
	r := Record{What: Told, Process: observation.Process, Op: observation.Op, Mode: m}
	for i, token := range tokens {
		h := Holder{Token: token, Owner: strconv.FormatUint(token, 10)[:1]}
		if i == 0 {
			r.Token, r.Owner = h.Token, h.Owner
		} else {
			r.Others = append(r.Others, h)
		}
	}
	return s.add(at, r)
}

// read is a history of readers 1 and 2 and writer 3, whom somebody observes.
func read() *script { return together().shared(1, 2).observe("7.1", 0, 700) }

// reader is a history of two readers, of whom the first observes the key, and stays longer.
func reader() *script {
	return (&script{}).hold("1.1", 1, 0, 150).hold("2.1", 2, 20, 100).shared(1, 2).observe("1.1", 0, 700)
}

// uploads is one of three who hold one of three permits, whom somebody observes.
func uploads() *script { return crowded(3).permits(3, 1, 2, 3).observe("7.1", 0, 700) }

var shared = Mode{Shared: true}

func permitOf(n int) Mode { return Mode{Shared: true, Limit: n} }

// TestSharingAcquitted guards what holds of one key may do at the same time.
func TestSharingAcquitted(t *testing.T) {
	for name, s := range map[string]*script{
		"readers, then a writer":         together().shared(1, 2),
		"a writer, then readers":         (&script{}).hold("1.1", 1, 0, 20).hold("2.1", 2, 30, 100).hold("3.1", 3, 40, 90).shared(2, 3),
		"permits":                        crowded(3).permits(3, 1, 2, 3),
		"permits, of others in turn":     crowded(3).hold("4.1", 4, 201, 300).hold("5.1", 5, 221, 310).permits(3, 1, 2, 3, 4, 5),
		"another limit, when it is idle": (&script{}).hold("1.1", 1, 0, 20).hold("2.1", 2, 30, 100).hold("3.1", 3, 40, 90).permits(1, 1).permits(2, 2, 3),
		"readers, granted out of order": together().shared(1, 2).acquire("4.1", 8, 20, 25).acquire("5.1", 7, 30, 35).shared(7, 8).killed("4.1", 26).killed("5.1", 36).
			acquire("6.1", 9, 140, 150).killed("6.1", 155).remove(func(r *Record) bool { return r.Process == "3.1" }),
		"a broken reader beside the writer": (&script{}).hold("2.1", 2, 0, 60).acquire("1.1", 1, 0, 5).held("1.1", 1, 10, 140).lost("1.1", 1, 141, "broken").shared(1, 2).
			breaks(1, 70, 80, OK).hold("3.1", 3, 90, 160),
		"a broken permit beside its successor": crowded(2).remove(of(Held, "1.1", 1)).held("1.1", 1, 10, 139).lost("1.1", 1, 141, "broken").
			breaks(1, 30, 40, OK).hold("3.1", 3, 60, 200).remove(func(r *Record) bool { return r.Process == "1.1" && (r.Call == Release || r.Call == Verify) }).permits(2, 1, 2, 3),
		"taken over, as another was broken": evicted().breaks(1, 47, 50, OK),
		"a reader's write that comes late":  together().shared(1, 2).wrote("3.1", 3, 140, true).wrote("1.1", 1, 150, false),
		"readers write in any order":        together().shared(1, 2).wrote("2.1", 2, 40, true).wrote("1.1", 1, 50, true).wrote("3.1", 3, 140, true),
		"all can be had":                    crowded(3).permits(3, 1, 2, 3).audit(3, 3, permitOf(3)),
		"no more than all can be had":       crowded(3).permits(3, 1, 2, 3).audit(4, 3, permitOf(3)),
		"the key can be had":                good().audit(2, 1, Mode{}),
		"a try in the way of another":       good().audit(2, 1, Mode{}).call("8.1", Try, 0, 602, 650, Refused),
		"told of all who come and go":       quiet(read().tells(4, shared, 1).tells(21, shared, 1, 2).tells(101, shared, 2).tells(116, Mode{}).tells(131, Mode{}, 3).tells(160, Mode{})),
		"told of both, and of none":         quiet(read().tells(21, shared, 1, 2).tells(160, Mode{})),
		"told by one who has left":          quiet(together().shared(1, 2).observe("2.1", 0, 700).tells(30, shared, 1, 2).tells(130, shared, 1).tells(131, Mode{}, 3).tells(160, Mode{})),
		"told by one who came and left":     quiet(reader().tells(151, shared, 2).tells(152, Mode{})),
		"told late":                         quiet(read().tells(129, shared, 1, 2).tells(154, Mode{}, 3).tells(590, Mode{})),
		"told of the second first":          quiet(read().remove(of(Held, "1.1", 1)).remove(func(r *Record) bool { return r.Process == "1.1" && r.Call == Verify }).held("1.1", 1, 40).edit(func(r *Record) bool { return r.Process == "1.1" && r.Call == Acquire && r.What == Return }, func(r *Record) { r.At = 39 * ms }).tells(26, shared, 2).tells(40, shared, 1, 2).tells(160, Mode{})),
		"told of permits":                   quiet(uploads().tells(10, permitOf(3), 1).tells(60, permitOf(3), 1, 2, 3).tells(201, permitOf(3), 2, 3).tells(241, Mode{})),
		"told of a permit that its owner never heard of": quiet(uploads().call("8.1", Acquire, 0, 50, 0, "").killed("8.1", 55).edit(of(Invoke, "8.1", 0), func(r *Record) { r.Owner, r.Mode = "8", permitOf(3) }).
			tells(10, permitOf(3), 1).tells(221, permitOf(3), 3, 8).tells(241, permitOf(3), 8).tells(400, Mode{})),
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range Check(s.calm().records, scriptRules) {
				t.Error(v)
			}
		})
	}
}

// evicted has the second of two permits broken, and told that it was taken over. The first was broken too.
func evicted() *script {
	return (&script{}).acquire("1.1", 1, 0, 5).held("1.1", 1, 10, 60).lost("1.1", 1, 70, "broken").
		acquire("2.1", 2, 20, 25).held("2.1", 2, 30, 55).lost("2.1", 2, 56, "taken_over").permits(2, 1, 2).breaks(2, 40, 45, OK)
}

var plantedSharing = []planted{
	wrong(RuleExclusion, "a writer beside readers", `process "2.1", token 2, shared, from 0.026000 s`, together().shared(2)),
	wrong(RuleExclusion, "a writer beside the second reader", `process "3.1", token 3, from`,
		(&script{}).hold("1.1", 1, 0, 40).hold("2.1", 2, 20, 120).hold("3.1", 3, 60, 100).shared(1, 2)),
	wrong(RuleExclusion, "a reader beside the writer", `process "3.1", token 3, shared, from`,
		(&script{}).hold("1.1", 1, 0, 100).hold("3.1", 3, 60, 160).shared(3)),
	wrong(RuleExclusion, "a permit beside a reader", `one of 2`, together().shared(1).permits(2, 2)),
	wrong(RuleExclusion, "permits of two limits", `one of 3`, together().permits(2, 1).permits(3, 2)),
	wrong(RuleExclusion, "one permit too many", `4 hold a permit at 0.066000 s: process "4.1", token 4, one of 3; process "1.1"`,
		crowded(4).remove(func(r *Record) bool { return r.Call == Verify }).permits(3, 1, 2, 3, 4)),
	wrong(RuleExclusion, "a permit of one is a lock", `2 hold a permit`, together().permits(1, 1, 2)),
	wrong(RuleExclusion, "a permit, a lease after its break", "3 hold a permit at 0.140000 s",
		crowded(2).remove(of(Held, "1.1", 1)).held("1.1", 1, 10, 180).breaks(1, 30, 40, OK).hold("3.1", 3, 60, 200).
			remove(func(r *Record) bool { return r.Process == "1.1" && (r.Call == Release || r.Call == Verify) }).permits(2, 1, 2, 3)),
	wrong(RuleExclusion, "a reader holds after a writer made the register refuse it", "was refused by the register",
		(&script{}).acquire("1.1", 1, 0, 5).held("1.1", 1, 10, 40).shared(1).acquire("3.1", 3, 50, 60).killed("3.1", 65).
			wrote("3.1", 3, 62, true).wrote("1.1", 1, 30, true).wrote("1.1", 1, 64, false).held("1.1", 1, 66)),
	wrong(RuleTokens, "a reader's token above that of the writer after it", "tokens fell",
		(&script{}).hold("1.1", 5, 0, 40).shared(5).hold("3.1", 3, 60, 100)),
	wrong(RuleTokens, "a writer's token above that of the reader after it", "tokens fell",
		(&script{}).hold("1.1", 5, 0, 40).hold("3.1", 3, 60, 100).shared(3)),
	wrong(RuleTokens, "a reader beside one with a token above the writer before both", "was granted it with token 5",
		(&script{}).hold("1.1", 5, 0, 40).hold("2.1", 6, 50, 100).hold("3.1", 3, 60, 100).shared(6, 3)),
	wrong(RuleTokens, "two readers with one token", "token 1 was granted twice",
		(&script{}).hold("1.1", 1, 0, 100).shared(1).hold("2.1", 1, 20, 90).mode(shared, 1)),
	wrong(RuleLinearizable, "a reader verified after the writer was granted", "token 1 is valid",
		(&script{}).acquire("1.1", 1, 0, 10).held("1.1", 1, 15).shared(1).breaks(1, 20, 90, GaveUp).acquire("2.1", 2, 5, 60).killed("2.1", 61).verify("1.1", 1, 70, 75)),
	wrong(RuleLinearizable, "a permit verified beyond the limit", "2 have been granted a permit",
		(&script{}).acquire("1.1", 1, 0, 10).held("1.1", 1, 15).breaks(1, 20, 90, GaveUp).acquire("2.1", 2, 5, 60).permits(1, 1, 2).verify("2.1", 2, 70, 75).verify("1.1", 1, 70, 75).killed("2.1", 80)),
	wrong(RuleCause, "taken over, and another was broken before", "nobody can have taken it over", evicted().breaks(1, 30, 35, OK)),
	wrong(RuleCause, "taken over, and another was broken later", "nobody can have taken it over", evicted().breaks(1, 60, 65, OK)),
	wrong(RuleFree, "a permit is lost", "was refused, one of 3 at", crowded(3).permits(3, 1, 2, 3).audit(3, 2, permitOf(3))),
	wrong(RuleFree, "a key is lost", "since then 0 have been granted", good().audit(1, 0, Mode{})),
	wrong(RuleFree, "a reader is kept out by nobody", "was refused, shared at", good().audit(1, 0, shared)),
	wrong(RuleFree, "a reader is kept out by another", "since then 1 have been granted", good().audit(2, 1, shared)),

	wrong(RuleObserve, "told of one reader of two", `although process "1.1", token 1, shared, held it until 0.095000 s`, read().tells(50, shared, 2)),
	wrong(RuleObserve, "told by a reader, as if it had left", `although process "1.1", token 1, shared, held it until 0.145000 s`,
		reader().tells(50, shared, 2)),
	wrong(RuleObserve, "told that a reader has left", `although process "1.1", token 1, shared, held it until 0.094000 s`, read().tells(10, shared, 1).tells(50, shared, 2)),
	wrong(RuleObserve, "told that both have left", "that nobody has it: although", read().tells(30, shared, 1, 2).tells(50, Mode{})),
	wrong(RuleObserve, "told of one who has left, when the other has", `although the release of process "1.1", token 1, shared, had been confirmed at 0.100000 s`,
		read().tells(30, shared, 1, 2).tells(130, shared, 1)),
	wrong(RuleObserve, "told of a writer beside a reader", `as held, shared, by process "3.1", token 3`, read().tells(150, shared, 2, 3)),
	wrong(RuleObserve, "told of readers as of writers", "2 hold it, and no more than 1 can", read().tells(50, Mode{}, 1, 2)),
	wrong(RuleObserve, "told of permits of another limit", "as held, one of 4, by", uploads().tells(60, permitOf(4), 1, 2, 3)),
	wrong(RuleObserve, "told of permits of readers", "as held, shared, by", uploads().tells(60, shared, 1, 2, 3)),
	wrong(RuleObserve, "told of more than there are", "4 hold it, and no more than 3 can", uploads().call("8.1", Acquire, 0, 50, 0, "").killed("8.1", 55).
		edit(of(Invoke, "8.1", 0), func(r *Record) { r.Owner, r.Mode = "8", permitOf(3) }).tells(60, permitOf(3), 1, 2, 3, 8)),
	wrong(RuleObserve, "told of a permit that nobody asked for", "token 8, a grant that nobody had by then", uploads().tells(60, permitOf(3), 1, 8)),
	wrong(RuleObserve, "told of a permit of who asked for another kind", "token 8, a grant that nobody had by then", uploads().call("8.1", Acquire, 0, 50, 0, "").killed("8.1", 55).
		edit(of(Invoke, "8.1", 0), func(r *Record) { r.Owner, r.Mode = "8", permitOf(2) }).tells(60, permitOf(3), 1, 8)),
	wrong(RuleObserve, "a reader comes back", "token 1 is of a grant that it had been told was over", read().tells(30, shared, 1, 2).tells(101, shared, 2).tells(110, shared, 1, 2)),
	wrong(RuleObserve, "readers twice", "the same twice in a row", read().tells(30, shared, 1, 2).tells(40, shared, 1, 2)),
	wrong(RuleObserve, "readers in another order", "token 2 stands before token 1", read().tells(30, shared, 2, 1)),
	wrong(RuleObserve, "a reader comes late", "a token lower than 3", read().tells(150, Mode{}, 3).tells(155, shared, 2)),
	wrong(RuleObserve, "a permit that stays", "was last told, at 0.060000 s, of token 1", quiet(uploads().hold("9.1", 9, 300, 330).tells(60, permitOf(3), 1, 2, 3))),
}
