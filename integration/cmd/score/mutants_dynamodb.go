package main

const (
	recordAcquire   = "internal/recordlock/acquire.go"
	recordWrite     = "internal/recordlock/write.go"
	recordHold      = "internal/recordlock/hold.go"
	recordHeartbeat = "internal/recordlock/heartbeat.go"
	recordDebt      = "internal/recordlock/debt.go"
	recordLine      = "internal/recordlock/line.go"
	recordObserve   = "internal/recordlock/observe.go"
	recordSeen      = "internal/recordlock/observation.go"
	recordEngine    = "internal/recordlock/engine.go"
	dynamoWrites    = "dynamolock/writes.go"
)

// What recordlock and dynamolock do against the hazards of DynamoDB, taken out.
var dynamoDBMutants = []mutant{
	{"D1", "a grant whose reply was lost is not recognised", dynamoDB, change{
		recordAcquire, "	case own != nil:\n		return c.confirm(ctx, own)\n", "",
	}, nil},
	{"D1", "a release that was carried out without a reply counts as a loss", dynamoDB, change{
		recordHold, "gone != nil && why == nil && !released {", "gone != nil && why == nil && (true || !released) {",
	}, nil},
	{"D2", "a beat may be sent after the release", dynamoDB, change{
		recordHeartbeat, "	if idle != nil {\n		<-idle\n	}\n	return h.gone", "	_ = idle\n	return h.gone",
	}, []change{
		{recordHeartbeat, "	if h.cancel != nil {\n		h.cancel()\n	}\n", ""},
		{dynamoWrites, `x.cond = x.expr("#leaseDurationMs > ? AND #fencingToken = ? AND ", releasedLease, h.Token) + x.cond`, "x.set(attrLease, h.Lease.Milliseconds())"},
	}},
	{"D3", "one failed beat is the last", dynamoDB, change{
		recordHeartbeat, "if h.gone == nil && live {", "if h.gone == nil && live && err == nil {",
	}, nil},
	{"D4", "wall clocks of two machines are compared", dynamoDB, change{
		recordSeen, "if e.opts.TrustLocalTime && !h.Touched.IsZero() {", "if !h.Touched.IsZero() {",
	}, nil},
	{"D4", "a beat renews the lease from its reply on", dynamoDB, change{
		recordHeartbeat, "				h.lease.Renew(sent)", "				h.lease.Renew(h.host.Now())",
	}, nil},
	{"D4", "a grant counts from its reply on", dynamoDB, change{
		recordHold, "	h.lease.Renew(sent)\n	h.heard = sent", "	h.lease.Renew(c.host.Now())\n	h.heard = sent",
	}, nil},
	{"D4", "an observer counts a lease from before the read", dynamoDB, change{
		recordSeen, "left := h.Lease - now.Sub(o.since[h.Beat])", "left := h.Lease - now.Sub(o.since[h.Beat]) - e.opts.Poll",
	}, nil},
	{"D4", "a beat that is confirmed after the lease revives it", dynamoDB, change{
		recordHeartbeat, "		err = h.renew(ctx, began, c)", "		err = h.renew(ctx, began, c)\n	} else {\n		err = h.renew(ctx, began, c)",
	}, nil},
	{"D5", "a call that was given up leaves its grant", dynamoDB, change{
		recordDebt, "	if len(open) == 0 && !owed {", "	if open = nil; !owed || owed {",
	}, nil},
	{"D5", "a write without an answer is looked for once", dynamoClosed, change{
		recordDebt, "case len(d.open) == 0, age >= e.opts.Late,", "case true, age >= e.opts.Late,",
	}, nil},
	{"D5", "an orphan that was removed counts for each write without an answer", dynamoClosed, change{
		recordDebt, "return slices.Contains(beats, a.beat) })", "return len(beats) > 0 })",
	}, nil},
	{"D6", "a late beat brings back an earlier one", dynamoDB, change{
		dynamoWrites, `x.expr("begins_with(#guid, ?) AND #guid < ?", []byte(h.Grant), guid)`, `x.expr("begins_with(#guid, ?)", []byte(h.Grant))`,
	}, nil},
	{"D6", "a beat does not compare the token of its grant", dynamoDB, change{
		dynamoWrites, `x.cond = x.expr("#leaseDurationMs > ? AND #fencingToken = ? AND ", releasedLease, h.Token) + x.cond`, `x.cond = x.expr("#leaseDurationMs > ? AND ", releasedLease) + x.cond`,
	}, nil},
	{"D7", "a new item starts with token 1", dynamoTTL, change{
		dynamoWrites, "first := max(s.ttl.now(now).UnixMilli()-1, 0)", "first := min(s.ttl.now(now).UnixMilli()-1, 0)",
	}, nil},
	{"D7", "a Swap does not compare the record", dynamoDB, change{
		dynamoWrites, "	x.cond = x.unchanged(v)\n	ever := true", "	x.cond = x.expr(\"attribute_exists(#guid)\")\n	ever := true",
	}, nil},
	{"D7", "a token of a key that is taken over does not rise", dynamoDB, change{
		recordWrite, "	next.Token++\n	next.Mode", "	next.Mode",
	}, nil},
	{"D9", "the time to live of another client stays", dynamoTTL, change{
		"dynamolock/timetolive.go", "	if foreign := s.ttl.foreign(); foreign != \"\" {\n		x.removes", "	if foreign := \"\"; foreign != \"\" {\n		x.removes",
	}, nil},
	{"D14", "an observer that was stopped takes an earlier read for silence", dynamoDB, change{
		recordObserve, "tell(rec.info(key, e.live(&seen, sent)))", "tell(rec.info(key, e.live(&seen, e.host.Now())))",
	}, nil},
	{"D16", "a broken grant is free at once", dynamoDB, change{
		recordSeen, "	case e.orphan(h.Grant):\n		return 0\n	case h.Lease", "	case e.orphan(h.Grant), h.Broken:\n		return 0\n	case h.Lease",
	}, nil},
	{"D16", "a broken grant can be renewed", dynamoDB, change{
		dynamoWrites, "			x.set(attrGUID, stranger())\n			x.set(attrMarked, []byte(v.guid))\n", "			x.set(attrMarked, []byte(v.guid))\n",
	}, nil},
	{"D17", "readers and writers hold a key together", dynamoDB, change{
		recordAcquire, "held > 0 && !c.req.Mode.SharesWith(p.next.Mode), held >= room:", "held > 0 && c.req.Mode != p.next.Mode && !c.req.Mode.Shared, held >= room:",
	}, nil},
	{"D17", "one more than the limit", dynamoDB, change{
		recordAcquire, "held >= room:", "held > room:",
	}, nil},
	{"D17", "a beat of a sharer does not compare its token", dynamoDB, change{
		dynamoWrites, `"(" + between(h.Token) + " OR " + between(0) + x.expr(" AND #holdfastOpenedToken = ?)", h.Token)`,
		`between(0)[:0] + x.expr("attribute_exists("+x.entry(h.Grant)+")")`,
	}, nil},
	{"D17", "a waiter of another mode leaves no intent", dynamoDB, change{
		recordAcquire, "		c.intend(ctx)\n", "",
	}, nil},
	{"D18", "a client that releases a key leaves it to no other", dynamoDB, change{
		"internal/recordlock/intent.go", "if i.Grant == \"\" || i.Mode != released {", "if i.Grant == \"\" || i.Mode == released {",
	}, nil},
	{"D19", "a waiter that does not lead is not told of its own grant", dynamoClosed, change{
		recordLine, "				if w.grant == h.Grant {\n					w.wake()\n				}\n", "				_ = w\n",
	}, nil},
	{"D20", "data of a holder is forgotten while its record is remembered", dynamoDB, change{
		recordEngine, "		e.saw(key, now)\n	}\n	return now",
		"		for i := range now.Holders {\n			now.Holders[i].Data = nil\n		}\n		e.saw(key, now)\n	}\n	return now",
	}, nil},
}
