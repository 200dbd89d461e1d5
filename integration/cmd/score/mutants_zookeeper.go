package main

// What zklock does against the hazards of ZooKeeper, taken out. Those of permits and of several kinds of holders are in
// mutants_sharing.go.
var zooKeeperMutants = []mutant{
	{"Z1", "a creation without a reply is repeated under another guid", zooKeeper, change{
		"zklock/create.go",
		`c.stage = unknown
		if c.hangUps`,
		`c.forget()
		if c.hangUps`,
	}, nil},
	{"Z1.2", "who gives up leaves a creation under way to itself", zooKeeper, change{
		"zklock/create.go",
		`creation.Abandon(orphan.removeCreated)`,
		`_ = orphan`,
	}, nil},
	{"Z1.2", "what a creation without a reply has left is not looked for", zooKeeper, change{
		"zklock/create.go",
		`case node.Err == nil, zkconn.UnknownOutcome(node.Err), c.stage == unknown:`,
		`case node.Err == nil && c.stage == unknown:`,
	}, nil},
	{"Z1.3", "late creations are looked for once", zooKeeper, change{
		"zklock/late.go",
		`l.all = append(l.all, one)`,
		`_ = l.all`,
	}, nil},

	{
		"Z2", "a request runs in whatever session there is, and what it made is one's own", zooKeeper,
		change{
			"zklock/internal/zkconn/batch.go",
			`drop := w.unwanted.Load() || !b.link.upIn(w.sess)`,
			`drop := w.unwanted.Load()`,
		},
		[]change{{"zklock/create.go", `case err == nil && !node.InSession:`, `case false:`}},
	},
	{"Z2", "the guid and the node of the former session stay", zooKeeper, change{
		"zklock/contender.go",
		`	c.letGo()
	c.sess = sess`,
		`	c.sess = sess`,
	}, nil},
	{
		"Z2", "the own node need not agree with what was made", zooKeeper,
		change{
			"zklock/own.go",
			`mismatch := node.Stat.EphemeralOwner`,
			`mismatch := false && node.Stat.EphemeralOwner`,
		},
		[]change{{"zklock/create.go", `case err == nil && !node.InSession:`, `case false:`}},
	},

	{"Z3", "a deletion without a reply counts as done", zooKeeper, change{
		"zklock/remove.go",
		`certain = false // that may have been this very request`,
		`return nil`,
	}, nil},
	{"Z3", "a repeated deletion that finds no node counts as a loss", zooKeeper, change{
		"zklock/remove.go",
		`missing = certain && e.link.InSession(sess)`,
		`missing = e.link.InSession(sess)`,
	}, nil},

	{"Z5", "every reply proves that the session is alive", zooKeeper, change{
		"zklock/internal/zkconn/reply.go",
		`	if w.link.config.AnyAnswer {
		renewed, ok`,
		`	if true || w.link.config.AnyAnswer {
		renewed, ok`,
	}, nil},
	{"Z5", "that the session was resumed proves that it is alive", zooKeeper, change{
		"zklock/internal/zkconn/session.go",
		`if begun || (s != nil && l.config.AnyAnswer) {`,
		`if s != nil {`,
	}, nil},
	{
		"Z5.2", "a silent server is waited for as long as go-zookeeper does", zooKeeper,
		change{
			"zklock/internal/zkconn/wire.go",
			`if limit.Before(t) {`,
			`if false && limit.Before(t) {`,
		},
		[]change{{"zklock/heartbeat.go", `if h.holding() {`, `if false && h.holding() {`}},
	},

	{"Z7", "a parent that is gone again is an error", zooKeeper, change{
		"zklock/create.go",
		`	case errors.Is(err, zk.ErrNoNode):
		if err := c.engine.createParents(ctx, c.parent)`,
		`	case errors.Is(err, zk.ErrNoNode) && c.parentMade:
		return zkconn.Listing{}, err
	case errors.Is(err, zk.ErrNoNode):
		if err := c.engine.createParents(ctx, c.parent)`,
	}, nil},

	{"Z9", "a waiter does not watch its own node", zooKeeper, change{
		"zklock/wait.go",
		`		case <-w.own.gone:
			err = w.ownGone()
`,
		``,
	}, nil},
	{"Z9", "nothing is looked at again after a reconnect", zooKeeper, change{
		"zklock/internal/zkconn/events.go",
		`	l.watches.recheck(w)
`,
		``,
	}, nil},
	{"Z10.2", "the going of a node is taken for that of all before it", zooKeeper, change{
		"zklock/rule.go",
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
		`	if len(b) <= password {
		return b
	}`,
		`	if len(b) <= password {
		return b
	}
	b = bytes.Clone(b)
	binary.BigEndian.PutUint64(b[8:], 0)`,
	}, nil},

	{"Z15", "the lease stays when the timeout shrinks", zooKeeper, change{
		"zklock/internal/zkconn/session.go",
		`s.Lease.Limit(sent, timeout)`,
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
		`	case r.op == opSetAuth:
		return nothing`,
		`	case r.op == opSetAuth:
		return heard`,
	}, nil},
	{"Z17", "what is heard of the own node is acted on later", zooKeeper, change{
		"zklock/internal/zkconn/watch.go",
		`		o.Fired(why)
	default:`,
		`		ws.link.tasks.Go(func(context.Context) { o.Fired(why) })
	default:`,
	}, nil},
	{"Z17", "the quorum is not asked before a grant", zooKeeper, change{
		"zklock/recipe.go",
		`unseen, doubtful := c.own.doubt()`,
		`unseen, doubtful := (*written)(nil), false`,
	}, nil},
	{"Z18", "a node that is missing in the next session was deleted", zooKeeper, change{
		"zklock/own_missing.go",
		`	case !o.engine.link.InSession(o.sess):
		return driver.ErrSessionExpired
	case reclaimed:`,
		`	case reclaimed:`,
	}, nil},
	{"Z18", "whoever deletes a node reclaims it", zooKeeper, change{
		"zklock/own_missing.go",
		`reclaimed := written && o.engine.link.InSession(o.sess) && (`,
		`reclaimed := o.engine.link.InSession(o.sess) || written && (`,
	}, nil},
	{"Z20", "a node that is missing in the next session counts as lost", zooKeeper, change{
		"zklock/remove.go",
		`missing = certain && e.link.InSession(sess)`,
		`missing = certain`,
	}, nil},
	{"Z20", "a contender forgets a node that may be there", zooKeeper, change{
		"zklock/contender.go",
		`	case created, queued:
		gone = c.engine.removeLater(c.sess, c.path())`,
		`	case created, queued:`,
	}, nil},
	{"Z22", "Close waits for a server for as long as it takes", zooKeeper, change{
		"close.go",
		`context.WithTimeoutCause(ctx, c.leaseLeft()+grace, errLeasesOver)`,
		`context.WithTimeoutCause(context.WithoutCancel(ctx), 1000*c.leaseLeft()+1000*grace, errLeasesOver)`,
	}, nil},
	{"Z24", "the socket of a session that has expired stays open", zooKeeper, change{
		"zklock/internal/zkconn/reply.go",
		`if w.sessionOver && w.rest == 0 {`,
		`if false && w.sessionOver && w.rest == 0 {`,
	}, nil},
	{"Z28", "a heartbeat that finds no node ends nothing", zooKeeper, change{
		"zklock/heartbeat.go",
		`			k.own.finish(k.own.whyGone(ctx))`,
		``,
	}, nil},
	{"Z28", "a heartbeat looks for one lock, whichever", zooKeeper, change{
		"zklock/heartbeat.go",
		`maxChecked = 16`,
		`maxChecked = 1`,
	}, nil},

	{"Z28.2", "a heartbeat in which many are gone proves nothing", zooKeeper, change{
		"zklock/heartbeat.go",
		`if err == nil && !proved {`,
		`if false {`,
	}, nil},
}
