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
	{"S7", "a break reaches the oldest of those who share a key", dynamoDB, change{
		"driver/info.go",
		`one.Data, one.Lease, one.LastHeard, one.Grant = h.Data, h.Lease, h.LastHeard, h.Grant`,
		`one.Data, one.Lease, one.Grant = h.Data, h.Lease, i.Grant`,
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
}
