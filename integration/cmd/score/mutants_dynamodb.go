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
)

// Cures of recordlock against the hazards of DynamoDB, taken out. The expressions of dynamolock are compared with the store in memory by
// TestDynamoDifferential.
var dynamoDBMutants = []mutant{
	{"D1", "a grant whose reply was lost is not recognised", dynamoDB, change{
		recordAcquire, "	case own != nil:\n		return c.confirm(ctx, own)\n", "",
	}, nil},
	{"D1", "a release that was carried out without a reply counts as a loss", dynamoDB, change{
		recordHold, "gone != nil && why == nil && !released {", "gone != nil && why == nil && (true || !released) {",
	}, nil},
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
	{"D7", "a token of a key that is taken over does not rise", dynamoDB, change{
		recordWrite, "	next.Token++\n	next.Mode", "	next.Mode",
	}, nil},
	{"D14", "an observer that was stopped takes an earlier read for silence", dynamoDB, change{
		recordObserve, "tell(rec.info(key, e.live(&seen, sent)))", "tell(rec.info(key, e.live(&seen, e.host.Now())))",
	}, nil},
	{"D16", "a broken grant is free at once", dynamoDB, change{
		recordSeen, "	case e.orphan(h.Grant):\n		return 0\n	case h.Lease", "	case e.orphan(h.Grant), h.Broken:\n		return 0\n	case h.Lease",
	}, nil},
	{"D17", "readers and writers hold a key together", dynamoDB, change{
		recordAcquire, "held > 0 && !c.req.Mode.SharesWith(p.next.Mode), held >= room:", "held > 0 && c.req.Mode != p.next.Mode && !c.req.Mode.Shared, held >= room:",
	}, nil},
	{"D17", "one more than the limit", dynamoDB, change{
		recordAcquire, "held >= room:", "held > room:",
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
