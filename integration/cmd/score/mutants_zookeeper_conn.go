package main

// The hazards from Z30 on: those of the connection, mostly.
var zooKeeperMutantsFrom30 = []mutant{
	{"Z30", "one transaction makes several nodes of a queue", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`w.alone, slices.ContainsFunc(b.waiting, beside):`,
		`w.alone, beside(&Write{}):`,
	}, nil},
	{"Z30", "one member of a transaction fails the others", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`		case !b.link.tasks.Go(func(context.Context) { b.single(w) }):
			w.finish(Outcome{Err: zk.ErrNoServer})`,
		`		case false && !b.link.tasks.Go(func(context.Context) {}):
		default:
			w.finish(Outcome{Err: replies[refused].Error})`,
	}, nil},
	{"Z30", "what has gathered runs in another session", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`&& w.sess == group[0].sess`,
		``,
	}, []change{{"zklock/internal/zkconn/batch.go", `conn := b.link.usableIn(group[0].sess)`, `conn := b.link.Conn()`}}},
	{"Z31", "a refused transaction proves as much as another", zooKeeper, change{
		"zklock/internal/zkconn/reply.go",
		`failed = failed || (r.op == opMulti && refused)`,
		`_ = refused`,
	}, nil},

	{"Z34", "data is written whatever the version", zooKeeper, change{
		"zklock/data.go",
		`h.keepWish(data), h.version)`,
		`h.keepWish(data), -1)`,
	}, nil},
	{"Z36", "after a reconnect, what an observer has missed is not looked for", zooKeeper, change{
		"zklock/internal/zkconn/watch.go",
		`	switch why := w.missed(f.Stat, err); {`,
		`	switch why := 0 * w.missed(f.Stat, err); {`,
	}, nil},
	{"Z36", "an observer does not ask what has become of what it has watched for very long", zooKeeper, change{
		"zklock/observe.go",
		`time.After(longest/2 + rand`,
		`time.After(1000*longest + rand`,
	}, nil},
	{"Z37", "a deletion after a write is a reclaim", zooKeeper, change{
		"zklock/own.go",
		`return boundOf(name) == reclaimBound(o.owner)`,
		`return true`,
	}, nil},
	{"Z38", "reads of the own node do not look for a wish", zooKeeper, change{
		"zklock/own.go",
		`case isWish(node.Data):`,
		`case false:`,
	}, nil},

	{"Z41", "calls are made before the credentials", zooKeeper, change{
		"zklock/internal/zkconn/dial.go",
		`	all := l.auth
`,
		`	all := l.auth[:0]
`,
	}, nil},
	{"Z48", "a server that has suppressed an event is not left", zooKeeper, change{
		"zklock/doubts.go",
		`		_ = w.Close()
`,
		``,
	}, nil},
	{"Z49", "a request that a busy server refuses fails", zooKeeper, change{
		"zklock/internal/zkconn/errors.go",
		`zk.ErrSessionMoved, errBusy, ErrSlow,`,
		`zk.ErrSessionMoved, ErrSlow,`,
	}, nil},
	{"Z49", "a busy server is asked again at once", zooKeeper, change{
		"zklock/internal/zkconn/calls.go",
		`pause = min(2*pause, s.Times().Redial)`,
		`pause = time.Millisecond`,
	}, nil},
	{"Z50", "a greeting is enough to dial without a pause again", zooKeeper, change{
		"zklock/internal/zkconn/session.go",
		`	l.refusals, l.usedLast = 0, l.host.Now()
`,
		`	l.refusals, l.failures, l.usedLast = 0, 0, l.host.Now()
`,
	}, nil},
	{"Z51", "a session goes on whose timeout has grown too much", zooKeeper, change{
		"zklock/internal/zkconn/dial.go",
		`	case s.grown: // its`,
		`	case false: // its`,
	}, nil},
	{"Z51", "a session whose timeout has grown is ended while it may have a lock", zooKeeper, change{
		"zklock/internal/zkconn/dial.go",
		`		s.Lease.End(driver.ErrSessionExpired)
		_ = l.endOn`,
		`		_ = l.endOn`,
	}, nil},
	{"Z52", "the first heartbeat after a grant takes its time", zooKeeper, change{
		"zklock/heartbeat.go",
		`	if h.short(k.sess) {`,
		`	if false && h.short(k.sess) {`,
	}, []change{{"zklock/heartbeat.go", `holding && h.short(sess)`, `false && holding && h.short(sess)`}}},
	{"Z57", "a try is refused by what its server knows", zooKeeper, change{
		"zklock/try.go",
		`if errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNames) {`,
		`if false && errors.Is(err, driver.ErrHeld) {`,
	}, nil},
	{"Z58", "a creation that was carried out twice has failed", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`w.creates && errors.Is(o.Err, zk.ErrNodeExists)`,
		`false && w.creates && errors.Is(o.Err, zk.ErrNodeExists)`,
	}, nil},
	{"Z59", "Close asks once for the end of the session", zooKeeper, change{
		"zklock/internal/zkconn/end.go",
		`_, down = l.ready(ctx, nil) {`,
		`down = driver.ErrClosed {`,
	}, nil},
}
