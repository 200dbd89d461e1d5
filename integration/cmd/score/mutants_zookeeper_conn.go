package main

// The hazards from Z30 on: those of the connection, mostly.
var zooKeeperMutantsFrom30 = []mutant{
	{"Z30", "one transaction makes several nodes of a queue", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`len(w.data()) > MaxGrouped || (w.create != nil && b.parents[dir(w.path)])`,
		`len(w.data()) > MaxGrouped`,
	}, nil},
	{"Z30", "one member of a transaction fails the others", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`		case !l.tasks.Go(func(context.Context) { b.single(w) }):
			w.finish(Outcome{Err: zk.ErrNoServer})`,
		`		case false && !l.tasks.Go(func(context.Context) {}):
		default:
			w.finish(Outcome{Err: replies[refused].Error})`,
	}, nil},
	{"Z30", "what has gathered runs in another session", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`group = slices.DeleteFunc(group, b.drop)`,
		``,
	}, nil},
	{"Z31", "a refused transaction proves as much as another", zooKeeper, change{
		"zklock/internal/zkconn/reply.go",
		`failed = failed || (r.op == opMulti && refused)`,
		`_ = refused`,
	}, nil},

	{
		"Z33", "a break after an own write looks like a reclaim", zooKeeper,
		change{
			"zklock/own_missing.go",
			`written := o.unseen != nil && !o.mine.has(o.unseen.reported)`,
			`written := o.unseen != nil`,
		},
		[]change{{"zklock/own_missing.go", `o.reclaimer(ctx, s) || o.reclaimer(ctx, o.list())`, `o.reclaimer(ctx, s) || s == nil`}},
	},
	{"Z34", "data is written whatever the version", zooKeeper, change{
		"zklock/data.go",
		`h.own.keepWish(w.data), version, func`,
		`h.own.keepWish(w.data), -1, func`,
	}, nil},
	{
		"Z36", "after a reconnect, what an observer has missed is not looked for", zooKeeper,
		change{
			"zklock/internal/zkconn/watch.go",
			`	case missing:
		return zk.EventNodeDeleted, true`,
			`	case missing:
		return 0, false`,
		},
		[]change{
			{"zklock/internal/zkconn/watch.go", `stat.Pzxid > before.Pzxid`, `false`},
			{"zklock/internal/zkconn/watch.go", `stat.Mzxid > before.Mzxid`, `stat == nil`},
		},
	},
	{"Z36", "an observer does not ask what has become of what it has watched for very long", zooKeeper, change{
		"zklock/observe.go",
		`e.doubts.askOf(w)`,
		``,
	}, nil},
	{"Z37", "a deletion after a write is a reclaim", zooKeeper, change{
		"zklock/own_missing.go",
		`(s != nil && o.reclaimer(ctx, s) || o.reclaimer(ctx, o.list()))`,
		`(s != nil || true)`,
	}, nil},
	{"Z37.2", "who reclaims is looked for in the first list only", zooKeeper, change{
		"zklock/own_missing.go",
		`(s != nil && o.reclaimer(ctx, s) || o.reclaimer(ctx, o.list()))`,
		`s != nil && o.reclaimer(ctx, s)`,
	}, nil},
	{"Z37.3", "who is cut off waits for the list before a loss is told", zooKeeper, change{
		"zklock/own_missing.go",
		`o.engine.link.Await(ctx, s.done)`,
		`select {
	case <-s.done:
	case <-ctx.Done():
	}`,
	}, nil},
	{"Z38", "reads of the own node do not look for a wish", zooKeeper, change{
		"zklock/own.go",
		`case wished(node.Data, o.owner):`,
		`case false:`,
	}, nil},

	{"Z41", "go-zookeeper hears that a request could not be sent", zooKeeper, change{
		"zklock/internal/zkconn/wire.go",
		`case err != nil && first:`,
		`case err != nil:`,
	}, nil},
	{"Z41.2", "a heartbeat comes before the credentials", zooKeeper, change{
		"zklock/internal/zkconn/events.go",
		`if admitted {`,
		`if true || admitted {`,
	}, nil},
	{
		"Z48", "a server may refuse to set the watches again", zooKeeper,
		change{
			"zklock/internal/zkconn/reply.go",
			`r.op == opSetWatches && failed`,
			`false`,
		},
		[]change{{"zklock/doubts.go", `&& l.IsWatched(path):`, `&& false:`}},
	},
	{"Z48.2", "who has waited long hears what it has asked for, and nothing else is looked at", zooKeeper, change{
		"zklock/doubts.go",
		`case errors.Is(err, zk.ErrNoNode) && l.IsWatched(path):
			s.untold(w, path)`,
		`case errors.Is(err, zk.ErrNoNode) && l.IsWatched(path):
			l.Recheck(ctx, l.NewLookout(ctx, 0).Watch(path, zkconn.WatchData))`,
	}, nil},
	{"Z49", "a request that a busy server refuses fails", zooKeeper, change{
		"zklock/internal/zkconn/errors.go",
		`errors.Is(err, errBusy) || `,
		``,
	}, nil},
	{"Z49", "a busy server is asked again at once", zooKeeper, change{
		"zklock/internal/zkconn/calls.go",
		`pause = min(2*pause, s.Times().Redial)`,
		`pause = time.Millisecond`,
	}, nil},
	{"Z50", "a greeting is enough to dial without a pause again", zooKeeper, change{
		"zklock/internal/zkconn/events.go",
		`	w, t := l.wire, l.times
`,
		`	w, t := l.wire, l.times
	l.failures = 0
`,
	}, nil},
	{"Z51", "a session that was only left has taken its znodes with it", zooKeeper, change{
		"zklock/remove.go",
		`now != sess && !sess.Left()`,
		`now != sess`,
	}, nil},
	{"Z51", "Close does not end the session that was left", zooKeeper, change{
		"zklock/internal/zkconn/leave.go",
		`l.endOne(ctx, one); err != nil {`,
		`l.endOne(ctx, one); false && err != nil {`,
	}, nil},
	{"Z51", "a session that was left is ended while it may have a lock", zooKeeper, change{
		"zklock/internal/zkconn/leave.go",
		`l.endLaterLocked(l.noteToEndLocked(s, timeout), s.Times().Session)`,
		`l.endLaterLocked(l.noteToEndLocked(s, timeout), time.Millisecond)`,
	}, nil},
	{"Z51.2", "a session that begins while the client closes is not ended", zooKeeper, change{
		"zklock/internal/zkconn/conn.go",
		`s != nil && l.toEnd[s.ID] == nil {`,
		`s != nil && l.toEnd[s.ID] == nil && confirmed {`,
	}, nil},
	{
		"Z52", "the first heartbeat after a grant takes its time", zooKeeper,
		change{
			"zklock/heartbeat.go",
			`if short {`,
			`if false && short {`,
		},
		[]change{{"zklock/heartbeat.go", `if !h.short(sess) {`, `if true || !h.short(sess) {`}},
	},
	{"Z57", "a try is refused by what its server knows", zooKeeper, change{
		"zklock/try.go",
		`if !errors.Is(err, driver.ErrHeld) && !errors.Is(err, driver.ErrNames) {`,
		`if err == nil || ctx != nil || errors.Is(err, driver.ErrHeld) {`,
	}, nil},
	{"Z58", "a creation that was carried out twice has failed", zooKeeper, change{
		"zklock/internal/zkconn/batch.go",
		`w.create != nil && errors.Is(o.Err, zk.ErrNodeExists)`,
		`false && w.create != nil && errors.Is(o.Err, zk.ErrNodeExists)`,
	}, nil},
	{"Z59", "a session that begins cannot be resumed but by go-zookeeper", zooKeeper, change{
		"zklock/internal/zkconn/reply.go",
		`	w.resumeBy(id, h[16:])
`,
		``,
	}, nil},
	{"Z60", "a server's word that a session is over confirms that", zooKeeper, change{
		"zklock/internal/zkconn/leave.go",
		`		err = l.confirmOver(ctx, s, one)
`,
		``,
	}, []change{{"zklock/remove.go", `&& !proof {`, `{`}}},
	{"Z61", "a znode that is there is created again", zooKeeper, change{
		"zklock/create.go",
		`case zkconn.CreatedBefore(err):`,
		`case false && zkconn.CreatedBefore(err):`,
	}, nil},
	{"Z62", "a session that a server says is over is forgotten", zooKeeper, change{
		"zklock/internal/zkconn/leave.go",
		`	if s != nil && l.toEnd[s.ID] == nil {
		l.endLaterLocked(`,
		`	if false {
		l.endLaterLocked(`,
	}, nil},
	{"Z63", "a late creation is spared for its name for ever", zooKeeper, change{
		"zklock/remove.go",
		`	if err == nil {
		e.late.keepNot(`,
		`	if false {
		e.late.keepNot(`,
	}, nil},
}
