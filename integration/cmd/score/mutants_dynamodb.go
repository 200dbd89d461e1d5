package main

// What dynamolock does against the hazards of DynamoDB, taken out; see mutants_sharing.go for those of shared keys.
var dynamoDBMutants = []mutant{
	{"D1", "an acquisition does not recognise its own item", dynamoDB, change{
		"dynamolock/acquire.go",
		`	case c.owns(r.old):
		return outcome`,
		`	case false:
		return outcome`,
	}, nil},
	{"D1", "a release that was carried out without a reply counts as a loss", dynamoDB, change{
		"dynamolock/hold.go",
		`if unanswered && !h.brokenIn(old)`,
		`if false && unanswered && !h.brokenIn(old)`,
	}, nil},

	{"D2", "a heartbeat revives what was released", dynamoDB, change{
		"dynamolock/writes.go",
		`	x.cond = all(x.live(), h.unchanged(x), x.atMost(attrGUID, guid))
	x.set(attrGUID, guid)`,
		`	x.cond = all(h.unchanged(x), x.atMost(attrGUID, guid))
	x.set(attrLease, h.leaseValue())
	x.set(attrGUID, guid)`,
	}, nil},
	{"D4", "one failed heartbeat is taken for a lost lock", dynamoDB, change{
		"dynamolock/heartbeat.go",
		`			h.tell(sent, err)
			h.host.Logger()`,
		`			h.lose(driver.ErrTakenOver)
			h.host.Logger()`,
	}, nil},
	{"D4", "one failed heartbeat is the last", dynamoDB, change{
		"dynamolock/heartbeat.go",
		`if h.lost == nil && live {`,
		`if h.lost == nil && live && err == nil {`,
	}, nil},
	{"D5", "the clocks of two machines are compared", dynamoDB, change{
		"dynamolock/observation.go",
		`if e.opts.TrustLocalTime && !o.item.touched.IsZero() {`,
		`if !o.item.touched.IsZero() {`,
	}, nil},
	{"D5", "a heartbeat renews the lease from its reply on", dynamoDB, change{
		"dynamolock/heartbeat.go",
		`		h.renewed(sent)
		h.heard = sent`,
		`		h.renewed(h.host.Now())
		h.heard = sent`,
	}, nil},
	{"D5", "a grant counts from the reply on", dynamoDB, change{
		"dynamolock/acquire.go",
		`	h.lease.Renew(sent)
	return h`,
		`	h.lease.Renew(c.host.Now())
	return h`,
	}, nil},
	{"D5", "an observer counts a lease from before the last read", dynamoDB, change{
		"dynamolock/observation.go",
		`left := o.item.lease - now.Sub(o.since)`,
		`left := o.item.lease - now.Sub(o.since) - e.opts.Poll`,
	}, nil},

	{"D6", "a request of a grant that is over takes the key again", dynamoDB, change{
		"dynamolock/writes.go",
		`		"NOT " + x.begins(c.grant),
	}, further...)`,
		`	}, further...)`,
	}, nil},
	{"D6", "what a call takes after it was given up stays taken", dynamoDB, change{
		"dynamolock/acquire.go",
		`	case taken:`,
		`	case taken && owed:`,
	}, nil},
	{"D6", "what arrives of a call without an answer stays taken", dynamoDB, change{
		"dynamolock/acquire.go",
		`c.leftovers.add(c.req.Key, c.key, c.unanswered.handOver(), granted || c.insists)`,
		`c.leftovers.add(c.req.Key, c.key, unanswered{}, granted || c.insists)`,
	}, nil},
	{"D6.2", "a holder does not look at the token", dynamoDB, change{
		"dynamolock/hold.go",
		`return all(x.is(attrToken, token(h.token)), x.begins(h.grant))`,
		`return x.begins(h.grant)`,
	}, nil},
	{"D6.2", "what arrives of the acquisition of a lock that is over stays taken", dynamoClosed, change{
		"dynamolock/hold.go",
		`h.leftovers.add(h.name, h.key, h.unanswered.handOver(), owed)`,
		`h.leftovers.add(h.name, h.key, unanswered{}, owed)`,
	}, []change{{"dynamolock/writes.go", `		"NOT " + x.begins(c.grant),
	}, further...)`, `	}, further...)`}}},
	{"D6.3", "a copy of an earlier heartbeat is carried out", dynamoDB, change{
		"dynamolock/writes.go",
		`x.cond = all(x.live(), h.unchanged(x), x.atMost(attrGUID, guid))`,
		`x.cond = all(x.live(), h.unchanged(x))`,
	}, nil},
	{
		"D7", "a release deletes the item, and tokens begin anew", dynamoDB,
		change{
			"dynamolock/hold.go",
			`	if e.opts.Mode == FailClosed {
		x := &expression{}
		x.cond = ours(x)`,
			`	if e.opts.Mode >= FailOpen {
		x := &expression{}
		x.cond = ours(x)`,
		},
		[]change{{"dynamolock/writes.go", `return number(max(e.calendar.now(now).UnixMilli()-1, 0))`, `return number(0)`}},
	},
	{
		"D7", "tokens begin anew when an item has expired", dynamoTTL,
		change{
			"dynamolock/writes.go",
			`return number(max(e.calendar.now(now).UnixMilli()-1, 0))`,
			`return number(0)`,
		},
		nil,
	},
	{"D8", "a waiter sleeps for the whole lease", dynamoDB, change{
		"dynamolock/wait.go",
		`delay, seen := c.lines.untilPoll(c.req.Key)`,
		`delay, seen := c.opts.Lease, c.lines.observed(c.req.Key)`,
	}, nil},
	{"D11", "a throttled request is not repeated", dynamoDB, change{
		"dynamolock/errors.go",
		`(e.kind == unknown || e.kind == refused)`,
		`e.kind == unknown`,
	}, nil},
	{"D14", "the time to live of another client stays", dynamoTTL, change{
		"dynamolock/timetolive.go",
		`if foreign := e.foreignTTL(); foreign != "" {`,
		`if foreign := e.foreignTTL(); false && foreign != "" {`,
	}, nil},
	{"D16", "a heartbeat waits its whole time limit", dynamoDB, change{
		"dynamolock/health.go",
		`return beatTimeout(usual, p.silent, p.slow)`,
		`return usual`,
	}, nil},
	{"D18", "a break leaves no token", dynamoDB, change{
		"dynamolock/writes.go",
		`	x.set(attrBroken, token(id.token)) // so that its holder learns of it, whoever comes next`,
		``,
	}, nil},
	{"D20", "a write is sent while one that was given up is under way", dynamoDB, change{
		"dynamolock/leftovers.go",
		`l != nil && len(l.writes) > 0 {`,
		`l != nil && len(l.writes) > 1<<20 {`,
	}, nil},
	{"D24", "what a call may have left is looked for once", dynamoClosed, change{
		"dynamolock/undo.go",
		`if err == nil && !l.owed && (late || s.closing && s.opts.Mode == FailOpen) {`,
		`if err == nil && !l.owed && (late || true) {`,
	}, nil},
	{"D29", "a try is answered from an old replica", dynamoDB, change{
		"dynamolock/look.go",
		`i, err := c.get(ctx, c.key, true)`,
		`i, err := c.get(ctx, c.key, false)`,
	}, nil},
	{"D29", "a try is answered by a read before it", dynamoDB, change{
		"dynamolock/line.go",
		`	if l.look == out {`,
		`	if false && l.look == out {`,
	}, nil},
	{"D32.2", "no heartbeat goes out without the data that is refused", dynamoDB, change{
		"dynamolock/heartbeat.go",
		`plain := c != nil && h.host.Now().Sub(h.heard) > h.opts.Heartbeat`,
		`plain := false`,
	}, nil},
	{"D32.3", "a reader's heartbeat brings back older data", dynamoDB, change{
		"dynamolock/heartbeat.go",
		`(err == nil && old == nil || maybeDone(err))`,
		`err == nil && old == nil`,
	}, nil},
	{"D34", "an observer that was stopped takes what it read before for silence", dynamoDB, change{
		"dynamolock/observe.go",
		`			sent = e.host.Now()
			i, err = e.get(ctx, attrs, true)`,
		`			i, err = e.get(ctx, attrs, true)
			sent = e.host.Now()`,
	}, nil},
	{"D34.2", "an acquisition waits for a lease that an observer has seen the end of", dynamoDB, change{
		"dynamolock/observe.go",
		`		e.lines.record(key, i) //`,
		`		//`,
	}, nil},
	{"D35", "whoever holds the key is asked", dynamoDB, change{
		"dynamolock/writes.go",
		`	x.cond = id.present(x)
	if id.shared {`,
		`	x.cond = x.live()
	if id.shared {`,
	}, nil},
	{"D46", "a break has all observers begin anew", dynamoDB, change{
		"dynamolock/item.go",
		`return j.isBroken() && j.token == i.token`,
		`return false && j.token == i.token`,
	}, nil},
	{"D46", "whoever has seen an earlier guid goes on counting after a break", dynamoDB, change{
		"dynamolock/item.go",
		`&& j.marked == i.guid && i.intent`,
		`&& i.intent`,
	}, nil},
	{"D47", "a late reclaim ends any grant of the same owner", dynamoDB, change{
		"dynamolock/writes.go",
		`	if held != nil && held.held() {
		states +=`,
		`	if c.req.Reclaim {
		states += " OR (" + x.is(attrOwner, text(c.req.Owner)) + " AND NOT " + x.begins(c.id) + ")"
	}
	if held != nil && held.held() {
		states +=`,
	}, nil},
	{"D48", "a client waits for its own dead grant", dynamoDB, change{
		"dynamolock/observation.go",
		`return i.held() && i.sharing == nil && len(guid) == guidLen`,
		`return false && len(guid) == guidLen`,
	}, []change{{"dynamolock/sharing_acquire.go", `if h.grant[:clientLen] == e.id && !e.grants.alive(h.grant) {`, `if false {`}}},
	{"D55", "who releases a key lets nobody go first", dynamoDB, change{
		"dynamolock/turn.go",
		`if released.turn == 0 {`,
		`if true {`,
	}, nil},
	{"D55", "all who wait look in step", dynamoDB, change{
		"dynamolock/turn.go",
		`poll - poll/8 + rand.N(poll/4)`,
		`poll + 0*rand.N(poll/4)`,
	}, nil},
	{"D54", "no clock says that a holder may be dead", dynamoDB, change{
		"dynamolock/try.go",
		`return now.Wall.After(touched.Add(lease))`,
		`return false`,
	}, nil},
	{"D53", "what was taken long ago is granted as it is", dynamoDB, change{
		"dynamolock/acquire.go",
		`if err := c.prove(ctx, h); err != nil {`,
		`if err := error(nil); err != nil {`,
	}, nil},
	{"D57", "what was heard long ago is who holds the key", dynamoDB, change{
		"dynamolock/lines.go",
		`since.Sub(l.heard) > gapOf(x.poll)`,
		`false`,
	}, nil},
	{"D58", "what the lock's own answers took does not count", dynamoDB, change{
		"dynamolock/heartbeat.go",
		`max(h.pulse.limit(most), h.pace.limit(most))`,
		`h.pulse.limit(most)`,
	}, nil},
	{"D58", "the last beats of a lease have as little time as others", dynamoDB, change{
		"dynamolock/heartbeat.go",
		`left < most+max(short, h.times.beats.Max)`,
		`left < 0`,
	}, nil},
	{"D60", "a waiter does not see that it has the key", dynamoClosed, change{
		"dynamolock/wait.go",
		`if seen.item != nil && (c.owns(seen.item) || c.brokenIn(seen.item)) {`,
		`if false {`,
	}, nil},
	{"D60", "nobody tells a waiter that it has the key", dynamoClosed, change{
		"dynamolock/lines.go",
		`	l.callHolders(x.id)
`,
		``,
	}, nil},
	{"D61", "what a write under way has taken is freed for an earlier one", dynamoClosed, change{
		"dynamolock/undo.go",
		`return !l.writes[grant]`,
		`return true`,
	}, nil},
	{"D62", "what a write has taken stands for an earlier one without an answer", dynamoClosed, change{
		"dynamolock/acquire.go",
		`if slices.Contains(c.inDoubt, number) {`,
		`if slices.Contains(c.inDoubt, number) || !c.unanswered.none() {`,
	}, nil},
}
