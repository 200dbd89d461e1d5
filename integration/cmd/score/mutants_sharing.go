package main

// What keeps those apart who share a key, and those who do not, taken out: rows S, and those of the engines.
var sharingMutants = []mutant{
	{"Z39", "a reader passes a writer that waits behind readers", zooKeeper, change{
		"zklock/kind.go",
		`	if !mode.Shared || len(ahead) == 0 {
		return ahead
	}`,
		`	if !mode.Shared || len(ahead) == 0 {
		return ahead
	}
	if sequence.Shared(ahead[0].name) {
		return nil
	}`,
	}, nil},
	{"Z39", "the grant of a reader tells that all before it are gone", zooKeeper, change{
		"zklock/ahead.go",
		`if c.waiter != nil || c.req.Mode.Shared {`,
		`if c.waiter != nil {`,
	}, nil},
	{
		"Z39", "the going of a reader tells that all before it are gone", zooKeeper,
		change{
			"zklock/ahead.go",
			`o.mate == nil && !sequence.Shared(beyond)`,
			`o.mate == nil && (true || sequence.Shared(beyond))`,
		},
		[]change{{
			"zklock/ahead.go", `if o.alone = o.pair || o.mateGranted(); !o.alone {`,
			`if o.alone = o.pair || o.mateGranted() || sequence.Shared(o.beyond); !o.alone {`,
		}},
	},
	{"Z39.2", "who gives up names whoever was before it as the holder", zooKeeper, change{
		"zklock/recipe.go",
		`return c.waitExpired(w, o.last, o.alone && !o.beside)`,
		`return c.waitExpired(w, o.last, true)`,
	}, nil},

	{"Z42", "a lease is made again at the going of the own one", zooKeeper, change{
		"zklock/permit.go",
		`if vain || w.Why`,
		`if false && vain || w.Why`,
	}, nil},
	{"Z42.3", "a place in the queue is lost again and again", zooKeeper, change{
		"zklock/permit.go",
		`p.vain, p.passed = true, p.passed || p.queued`,
		`p.vain = true`,
	}, nil},
	{
		"Z43", "the limit is not looked at again after the lease", zooKeeper,
		change{
			"zklock/permit.go",
			`if p.replaced(keys.Stat) {`,
			`if keys.Stat == nil {`,
		},
		[]change{{"zklock/permit.go", `if p.limit != nil && !p.at.kazoo {`, `if false {`}},
	},
	{"Z43", "the limit is replaced while there may be leases", zooKeeper, change{
		"zklock/permit_limit.go",
		`ops = append(ops, &zk.DeleteRequest{Path: s.leases, Version: -1},`,
		`ops = append(ops[:0],`,
	}, nil},
	{"Z43.2", "a lease is made without a look at the limit", zooKeeper, change{
		"zklock/permit.go",
		`if p.limit != nil && !p.at.kazoo {`,
		`if false {`,
	}, nil},
	{"Z45", "who takes a lock does not look for a semaphore", zooKeeper, change{
		"zklock/recipe.go",
		`c.engine.noSemaphore(ctx, c.req.Key, others)`,
		`c.engine.noSemaphore(ctx, c.req.Key, others[:0])`,
	}, nil},
	{"Z45", "who takes a permit does not look for a lock that came meanwhile", zooKeeper, change{
		"zklock/permit.go",
		`p.refuse(ctx, keys.Names)`,
		`p.refuse(ctx, nil)`,
	}, nil},
	{"Z46", "who has a lease beside a lock is told of as a holder", zooKeeper, change{
		"zklock/semaphore.go",
		`ok && node.Stat.Czxid < lock &&`,
		`ok && lock > 0 &&`,
	}, nil},
	{"Z46", "who has a lock beside a semaphore is told of as the holder", zooKeeper, change{
		"zklock/semaphore.go",
		`if stat.Czxid < czxid &&`,
		`if false && stat.Czxid < czxid &&`,
	}, nil},
	{"Z46.2", "a lock overlooks who moves from the queue to the leases", zooKeeper, change{
		"zklock/below.go",
		`if err == nil && !used {
		// Whoever`,
		`if err == nil && !used {
		return "", 0, nil
	}
	if false {
		// Whoever`,
	}, nil},
	{"Z46.3", "an observer goes by those who wait for a permit, whether or not locks know of the semaphore", zooKeeper, change{
		"zklock/semaphore.go",
		`leases.Czxid > stat.Czxid {`,
		`leases.Czxid < 0 {`,
	}, nil},
	{"Z47", "who has two nodes is told of as two", zooKeeper, change{
		"zklock/kind.go",
		`if guid == "" || !seen[guid] {`,
		`if true || !seen[guid] {`,
	}, nil},

	{"S4", "a permit that was given up is kept", zooKeeper, change{
		"zklock/permit.go",
		`func (p *permit) letGo() {
	p.lease.letGo()`,
		`func (p *permit) letGo() {`,
	}, nil},
	{"S5", "a permit is taken however many are", zooKeeper, change{
		"zklock/permit.go",
		`if blocked := !alone || len(c.blockers(ahead)) > 0; blocked || void(c.node) {`,
		`if blocked := !alone || false && len(c.blockers(ahead)) > 0; blocked {`,
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
	{"D45", "an old replica says how a key is used", dynamoDB, change{
		"dynamolock/wait.go",
		`			err = c.mismatch(&met)`,
		`			if err = c.mismatch(&met); err == nil {
				seen = c.lines.observed(c.req.Key)
				err = c.mismatch(&seen)
			}`,
	}, nil},
}
