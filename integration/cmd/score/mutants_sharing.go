package main

// What keeps those apart who share a key, and those who do not, taken out: rows S, and those of the engines.
var sharingMutants = []mutant{
	{"Z39", "a reader passes a writer that waits behind readers", zooKeeper, change{
		"zklock/rule.go",
		`	if !mode.Shared {
		return line
	}`,
		`	if !mode.Shared {
		return line
	}
	if len(line) > 0 && mode.Limit == 0 && shares(mode, line[0]) {
		return nil
	}`,
	}, nil},
	{"Z39.2", "who gives up names whoever was before it as the holder", zooKeeper, change{
		"zklock/wait.go",
		`w.alone && watch != nil`,
		`watch != nil`,
	}, nil},
	{"Z42", "permits that go are counted though a lock is before them", zooKeeper, change{
		"zklock/rule.go",
		`mode.Limit, run == len(ahead)`,
		`mode.Limit, true`,
	}, nil},
	{"Z42", "permits beside a lock that goes do not count", zooKeeper, change{
		"zklock/rule.go",
		`alone := mode.Limit == 0 || beside < mode.Limit`,
		`alone := mode.Limit == 0 || beside >= 0`,
	}, nil},
	{"Z42", "the permit before the turn is taken", zooKeeper, change{
		"zklock/rule.go",
		`until: k - 1, enough: true`,
		`until: min(k, len(line)-1), enough: true`,
	}, nil},
	{"Z42.2", "permits of two limits share a key", zooKeeper, change{
		"zklock/rule.go",
		`return mode.SharesWith(modeOf(x.name))`,
		`return mode.Shared && (mode.Limit > 0) == (modeOf(x.name).Limit > 0) && modeOf(x.name).Shared`,
	}, nil},
	{"Z42.2", "a permit is taken beside a lock", zooKeeper, change{
		"zklock/rule.go",
		`if mode.Limit > 0 && (len(others) > 0 || len(ahead) >= mode.Limit) {`,
		`if others = others[:len(others)*(1-min(1, mode.Limit))]; mode.Limit > 0 && len(ahead) >= mode.Limit {`,
	}, nil},
	{"Z42.3", "a waiter for a permit watches the oldest holder", zooKeeper, change{
		"zklock/rule.go",
		`	line = line[max(0, len(line)-k-1):]
	return`,
		`	line = line[:1]
	return`,
	}, nil},
	{"Z47", "who has two nodes is told of as two", zooKeeper, change{
		"zklock/rule.go",
		`if guid == "" || !seen[guid] {`,
		`if true || !seen[guid] {`,
	}, nil},

	{"S4", "a permit that was given up is kept", zooKeeper, change{
		"zklock/recipe.go",
		`		if !granted { // the caller's Retry may have panicked`,
		`		if !granted && req.Mode.Limit == 0 {`,
	}, nil},
	{"S5", "a permit is taken however many are", zooKeeper, change{
		"zklock/rule.go",
		`len(ahead) >= mode.Limit) {`,
		`len(ahead) > mode.Limit) {`,
	}, nil},
	{"S2.2", "a writer that gives up goes on keeping readers out", dynamoDB, change{
		"dynamolock/acquire.go",
		`granted || c.insists)`,
		`granted)`,
	}, nil},
	{
		"S6", "who takes a permit looks at no limit but its own", dynamoDB,
		change{
			"dynamolock/sharing_acquire.go",
			`c.req.Mode.Shared && i.sharing.limit == c.req.Mode.Limit &&`,
			`c.req.Mode.Shared &&`,
		},
		[]change{{"dynamolock/sharing_writes.go", `		conds = append(conds, x.is(attrLimit, number(int64(n))))
	} else {
		conds = append(conds, "attribute_not_exists("+x.name(attrLimit)+")")
	}`, `		_ = n
	}`}},
	},
	{"S7", "a break reaches the oldest of those who share a key", dynamoDB, change{
		"driver/info.go",
		`one.Holder, one.Holders, one.Queue = h, nil, nil`,
		`one.Holder, one.Holders, one.Queue, one.Grant = h, nil, nil, i.Grant`,
	}, nil},
	{"S8", "a reader that is gone comes back to observers", zooKeeper, change{
		"observe.go",
		`if n := len(info.Holders); n > 0 {`,
		`if n := len(info.Holders); false && n > 0 {`,
	}, nil},

	{"S8.2", "a late renewal brings back to observers who shares a key and was over", dynamoDB, change{
		"observe.go",
		`if info = o.withoutRevived(info); o.state != nil`,
		`if o.state != nil`,
	}, nil},

	{"D36.3", "an exclusive lock keeps the attributes of those who shared the key", dynamoDB, change{
		"dynamolock/writes.go",
		`range sharedAttributes {`,
		`range sharedAttributes[:0] {`,
	}, nil},
	{"D37", "whoever shares a key lives while another does", dynamoDB, change{
		"dynamolock/sharing_acquire.go",
		`now.Sub(o.entries[h.grant])`,
		`now.Sub(o.since)`,
	}, nil},
	{"D37.3", "who reclaims a permit counts on its room when it is free", dynamoDB, change{
		"dynamolock/sharing_writes.go",
		`return all("attribute_exists("+x.entry(attrHolders, grant)+")",
		"("+x`,
		`return all("("+x`,
	}, nil},
	{"D38", "a request to join may come when grants were removed", dynamoDB, change{
		"dynamolock/sharing_writes.go",
		`		x.atMost(attrFreed, token(i.token)),`,
		``,
	}, nil},
	{"D38", "who leaves notes nothing", dynamoDB, change{
		"dynamolock/sharing_writes.go",
		`		x.sets = append(x.sets, x.name(attrFreed)+" = "+x.name(attrToken))
		x.removeEntry(grant)`,
		`		x.removeEntry(grant)`,
	}, nil},
	{"D38.2", "a request to join is sent by who has read its own entry", dynamoDB, change{
		"dynamolock/acquire.go",
		`if seen.item != nil && seen.item.holder(c.grant) != nil {`,
		`if false && seen.item != nil && seen.item.holder(c.grant) != nil {`,
	}, nil},
	{"D38.3", "a join that was given up stays", dynamoDB, change{
		"dynamolock/undo.go",
		`freed, err = s.giveBackShared(ctx, l.key, i, func(h *holder) bool { return h.grant[:clientLen] == s.id && s.dead(l, h.grant) })`,
		``,
	}, nil},
	{"D39", "a join takes the token of the item", dynamoDB, change{
		"dynamolock/acquire.go",
		`h.token, h.entry, h.others = entry.token, &entry, len(own.sharing.holders)-1`,
		`h.entry, h.others = &entry, len(own.sharing.holders)-1`,
	}, nil},
	{"D39", "the lease of a join counts from its repetition", dynamoDB, change{
		"dynamolock/sharing_acquire.go",
		`			return sent
		}
	}`,
		`			_ = sent
			return c.sends[len(c.sends)-1]
		}
	}`,
	}, nil},
	{"D40", "a heartbeat brings an entry back", dynamoDB, change{
		"dynamolock/sharing_writes.go",
		`x.cond = all(x.holds(h.grant, h.token), x.entry(attrHolders, h.grant)+" < "+value)`,
		`x.cond = x.shared()`,
	}, nil},
	{"D40", "a heartbeat brings an older entry back", dynamoDB, change{
		"dynamolock/sharing_writes.go",
		`x.cond = all(x.holds(h.grant, h.token), x.entry(attrHolders, h.grant)+" < "+value)`,
		`x.cond = all(x.holds(h.grant, h.token), x.unbroken(h.grant))`,
	}, nil},
	{"D41", "a writer keeps no readers out", dynamoDB, change{
		"dynamolock/intent.go",
		`if c.req.Mode.Shared || i == nil ||`,
		`if true || i == nil ||`,
	}, nil},
	{"D41", "what keeps readers out never ends", dynamoDB, change{
		"dynamolock/intent.go",
		`left := lease - now.Sub(o.intentSince)`,
		`left := lease - 0*now.Sub(o.intentSince)`,
	}, nil},
	{"D41.2", "a free item is kept for a dead writer", dynamoDB, change{
		"dynamolock/intent.go",
		`if o.item.form == released && !o.item.touched.IsZero() {`,
		`if false && !o.item.touched.IsZero() {`,
	}, nil},
	{"D41.3", "a reader does not wait for the end of what keeps it out", dynamoDB, change{
		"dynamolock/observation.go",
		`left = max(left, c.intentLeft(o, c.host.Now()))`,
		``,
	}, nil},
	{"D44", "a release removes an entry that somebody has broken", dynamoDB, change{
		"dynamolock/sharing_writes.go",
		`if how == leaves {`,
		`if false && how == leaves {`,
	}, nil},
	{"D44", "a reader takes the owner of the item for that of who reclaims", dynamoDB, change{
		"dynamolock/sharing_hold.go",
		`if i.sharing == nil {
		return i.owner`,
		`if i.sharing == nil || i.owner != "" {
		return i.owner`,
	}, nil},
}
