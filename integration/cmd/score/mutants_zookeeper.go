package main

// What zklock does against the hazards of ZooKeeper, taken out. Those of permits and of several kinds of holders are in
// mutants_sharing.go.
var zooKeeperMutants = []mutant{
	{"Z1", "a node whose creation had no reply is not looked for", zooKeeper, change{
		"zklock/recipe.go",
		`c.unknown = zkconn.UnknownOutcome(err)`,
		`c.unknown = false`,
	}, nil},
	{"Z1.2", "a call that gives up forgets its creation in flight", zooKeeper, change{
		"zklock/recipe.go",
		`			orphan.letGo()
`,
		`			orphan.forget()
`,
	}, nil},
	{"Z1.2", "a call that gives up does not look for the node of a creation without a reply", zooKeeper, change{
		"zklock/recipe.go",
		`c.engine.late.remove(c.sess, c.parent, c.guid)`,
		`_ = c.guid`,
	}, nil},
	{"Z1.3", "late creations are not looked for", zooKeeper, change{
		"zklock/late.go",
		`l.all = append(l.all, lateCreation{`,
		`_ = append(l.all, lateCreation{`,
	}, nil},

	{"Z2", "a request runs in whatever session there is, and what it made is one's own", zooKeeper, change{
		"zklock/internal/zkconn/conn.go",
		`if !l.isOpen || l.session != s {`,
		`if !l.isOpen {`,
	}, []change{{"zklock/own.go", `case node.Stat.EphemeralOwner`, `case false && node.Stat.EphemeralOwner`}}},
	{"Z2", "the guid and the node of the former session stay", zooKeeper, change{
		"zklock/recipe.go",
		`				c.letGo()
				c.sess = sess`,
		`				c.sess = sess`,
	}, nil},

	{"Z3", "a deletion without a reply counts as done", zooKeeper, change{
		"zklock/remove.go",
		`sent = true // this request may have deleted it`,
		`return nil`,
	}, nil},
	{"Z3", "a repeated deletion that finds no node counts as a loss", zooKeeper, change{
		"zklock/remove.go",
		`missing = !sent`,
		`missing = true`,
	}, nil},

	{"Z5", "every reply proves that the session is alive", zooKeeper, change{
		"zklock/internal/zkconn/reply.go",
		`w.link.config.AnyAnswer && shows != nothing {`,
		`shows != nothing {`,
	}, nil},
	{"Z5", "that the session was resumed proves that it is alive", zooKeeper, change{
		"zklock/internal/zkconn/session.go",
		`if begins || l.config.AnyAnswer {`,
		`if begins || s != nil {`,
	}, nil},
	{"Z5.2", "a silent server is waited for as long as go-zookeeper does", zooKeeper, change{
		"zklock/internal/zkconn/wire.go",
		`if limit.Before(t) {`,
		`if false && limit.Before(t) {`,
	}, []change{{"zklock/heartbeat.go", `		if holding {
			_ = w`, `		if false && holding {
			_ = w`}}},

	{"Z7", "a parent that is gone again is an error", zooKeeper, change{
		"zklock/parents.go",
		`		return errStartOver // a client`,
		`		return err // a client`,
	}, nil},

	{"Z9", "a waiter does not watch its own node", zooKeeper, change{
		"zklock/wait.go",
		`		case <-w.own.gone:
			err = w.ownGone()
`,
		``,
	}, nil},
	{"Z9", "no watch is set again after a reconnect", zooKeeper, change{
		"zklock/internal/zkconn/dial.go",
		`	l.watches.renew(w)
`,
		``,
	}, nil},
	{"Z9", "a watch counts that was set on a connection which is lost", zooKeeper, change{
		"zklock/internal/zkconn/watch.go",
		`		if ws.link.Wire() != on {`,
		`		if on == nil {`,
	}, nil},
	{"Z10.2", "the going of a node is taken for that of all before it", zooKeeper, change{
		"zklock/wait.go",
		`until: len(line) - 1}`,
		`until: len(line) - 1, enough: true}`,
	}, nil},

	{"Z11", "methods leave it to timers that a lease is over", zooKeeper, change{
		"driver/lease.go",
		`if t.term == l.term {`,
		`if false && t.term == l.term {`,
	}, nil},
	{"Z11", "a renewal extends what is over", zooKeeper, change{
		"driver/lease.go",
		`	over := l.expireLocked()
	until := sent.Add(l.length)`,
		`	var over []*Tenant
	until := sent.Add(l.length)`,
	}, nil},
	{"Z12", "a holder does not hear that its node was deleted", zooKeeper, change{
		"zklock/own.go",
		`o.lost, o.asked = lost, asked`,
		`o.asked = asked`,
	}, nil},
	{"Z13", "a server is accepted that is behind what was seen", zooKeeper, change{
		"zklock/internal/zkconn/session.go",
		`int64(0), l.lastZxid, `,
		`int64(0), int64(0), `,
	}, nil},

	{"Z15", "the lease stays when the timeout shrinks", zooKeeper, change{
		"zklock/internal/zkconn/session.go",
		`s.Lease.Limit(asked, timeout)`,
		`_ = timeout`,
	}, nil},
	{"Z16", "the leader's pings are taken to arrive at once", zooKeeper, change{
		"zklock/internal/zkconn/trust.go",
		`last(t.answers, x.sent.Add(-t.window))`,
		`last(t.answers, x.sent)`,
	}, nil},
	{"Z16", "a write proves that the session was alive when it was sent", zooKeeper, change{
		"zklock/internal/zkconn/trust.go",
		`		renewed = t.opened
		if i := last(t.tables, x.sent); i >= 0 {`,
		`		renewed = x.sent
		if i := last(t.tables, x.sent); false && i >= 0 {`,
	}, nil},

	{"Z16.2", "the answer to credentials proves that the server has noted the session", zooKeeper, change{
		"zklock/internal/zkconn/reply.go",
		`if failed || r.op == opSetAuth {`,
		`if failed {`,
	}, nil},
	{"Z17", "what is heard of the own node is acted on later", zooKeeper, change{
		"zklock/internal/zkconn/watch.go",
		`		o.Fired(why, err) // here and now`,
		`		ws.link.tasks.Go(func(context.Context) { o.Fired(why, err) }) // here and now`,
	}, nil},
	{"Z17", "the quorum is not asked before a grant", zooKeeper, change{
		"zklock/recipe.go",
		`c.own.doubt()`,
		`c.own.doubt() && false`,
	}, nil},
	{"Z17", "an own node is taken for watched after a reconnect", zooKeeper, change{
		"zklock/internal/zkconn/watch.go",
		`w.on != nil && !w.fired && l.Wire() == w.on`,
		`w.on != nil && !w.fired`,
	}, nil},
	{"Z18", "watches outlive their session", zooKeeper, change{
		"zklock/internal/zkconn/session.go",
		`range l.watches.all(nil) {`,
		`range l.watches.all(nil)[:0] {`,
	}, nil},
	{"Z18", "a node that is missing in the next session was deleted", zooKeeper, change{
		"zklock/own.go",
		`	case o.engine.link.Session() != o.sess: // it has gone with its session`,
		`	case false:`,
	}, nil},
	{"Z20", "a contender forgets a node that may be there", zooKeeper, change{
		"zklock/recipe.go",
		`	case c.node != "":
		c.engine.removeLater(c.sess, c.path())`,
		`	case c.node != "":`,
	}, nil},
	{"Z22", "Close waits for a server for as long as it takes", zooKeeper, change{
		"close.go",
		`context.WithTimeoutCause(ctx, c.leaseLeft()+grace, errLeasesOver)`,
		`context.WithTimeoutCause(context.WithoutCancel(ctx), 1000*c.leaseLeft()+1000*grace, errLeasesOver)`,
	}, nil},
	{"Z24", "the socket of a session that has expired stays open", zooKeeper, change{
		"zklock/internal/zkconn/gozookeeper.go",
		`		_ = w.Close() // go-zookeeper leaves it open
`,
		``,
	}, nil},
	{"Z28", "a heartbeat that finds no node ends nothing", zooKeeper, change{
		"zklock/heartbeat.go",
		`			k.finish(k.whyMissing(ctx))
`,
		``,
	}, nil},
	{"Z28", "heartbeats check the same lock each time", zooKeeper, change{
		"zklock/heartbeat.go",
		`	h.holds = append(h.holds[1:], k)
`,
		``,
	}, nil},
}
