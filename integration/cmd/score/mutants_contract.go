package main

// What the root package does for all engines, taken out.
var contractMutants = []mutant{
	{"R5", "a wait that is too short for an answer names no holder", dynamoDB, change{
		"acquire.go",
		`; unasked == nil && info.Held {`,
		`; false && unasked == nil && info.Held {`,
	}, nil},
	{"R7", "several keys are taken in the order given", zooKeeper, change{
		"all.go",
		`return strings.Compare(a.key, b.key)`,
		`return 0 * strings.Compare(a.key, b.key)`,
	}, nil},
	{
		"R8", "the wait for a key goes on when another is lost", zooKeeper,
		change{
			"all.go",
			`stop := context.AfterFunc(before.live, func() { cancel(context.Cause(before.live)) })`,
			`stop := context.AfterFunc(before.live, func() {})`,
		},
		[]change{{"all.go", `if locks.Extend(requests[0].ttl) != nil {`, `if false && locks.Extend(requests[0].ttl) != nil {`}},
	},
	{"R9", "a failure keeps the locks that there were", zooKeeper, change{
		"all.go",
		`if !complete {`,
		`if false && !complete {`,
	}, nil},
	{"R10", "a write of data outlasts the lock", zooKeeper, change{
		"lock.go",
		`bound, cancel := k.Context(entered)`,
		`bound, cancel := context.WithCancel(entered)`,
	}, nil},
	{"R11", "a former holder comes back to observers", zooKeeper, change{
		"observe.go",
		`if grant.Token > o.newest || `,
		`if true || grant.Token > o.newest || `,
	}, nil},

	{"E2", "the key is given back while lead runs", dynamoDB, change{
		"election_term.go",
		`stop := context.AfterFunc(termCtx, func() { t.ended() })`,
		`stop := context.AfterFunc(termCtx, func() { t.ended(); _ = lock.Release(context.Background()) })`,
	}, nil},
	{"E2", "Close does not wait for lead", dynamoDB, change{
		"close.go",
		`c.endLocks(terms)`,
		`c.endLocks(nil)`,
	}, nil},
	{"E3", "a candidate is gone after one loss", dynamoDB, change{
		"election_term.go",
		`if err = lead(termCtx, lock); t.lostBy(err) {`,
		`if err = lead(termCtx, lock); false && t.lostBy(err) {`,
	}, nil},
	{"E5", "a resignation waits for nothing", dynamoDB, change{
		"election.go",
		`err := t.lock.Release(ctx)`,
		`err := error(nil)`,
	}, nil},
	{"E9", "the ctx of lead leaves it to timers that the lease is over", dynamoDB, change{
		"lock_context.go",
		`if c.Context.Err() != nil {`,
		`if true || c.Context.Err() != nil {`,
	}, nil},
	{"E9.2", "who looks at the ctx of a lock that is over does not end it", dynamoDB, change{
		"lock_context.go",
		`if err := c.over(); err != nil {`,
		`if err := c.over(); false && err != nil {`,
	}, nil},
}
