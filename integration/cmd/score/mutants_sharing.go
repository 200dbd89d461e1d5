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
	if len(line) > 0 && mode.Limit == 0 && mode.SharesWith(modeOf(line[0].name)) {
		return nil
	}`,
	}, nil},
	{"Z39.2", "who gives up names whoever was before it as the holder", zooKeeper, change{
		"zklock/wait.go",
		`len(w.ahead) != 1 || watch == nil`,
		`len(w.ahead) == 0 || watch == nil`,
	}, nil},
	{"Z42", "permits that go are counted though a lock is before them", zooKeeper, change{
		"zklock/wait.go",
		`mode.Limit, run == len(ahead)`,
		`mode.Limit, true`,
	}, nil},
	{"Z42", "permits beside a lock that goes do not count", zooKeeper, change{
		"zklock/wait.go",
		`alone := mode.Limit == 0 || beside < mode.Limit`,
		`alone := mode.Limit == 0 || beside >= 0`,
	}, nil},
	{"Z42", "the permit before the turn is taken", zooKeeper, change{
		"zklock/wait.go",
		`until: k - 1, enough: true`,
		`until: min(k, len(line)-1), enough: true`,
	}, nil},
	{"Z42.2", "permits of two limits share a key", zooKeeper, change{
		"zklock/rule.go",
		`return mode.SharesWith(modeOf(x.name)) })
}`,
		`return mode.Shared && (mode.Limit > 0) == (modeOf(x.name).Limit > 0) && modeOf(x.name).Shared })
}`,
	}, nil},
	{"Z42.2", "a permit is taken beside a lock", zooKeeper, change{
		"zklock/rule.go",
		`if mode.Limit > 0 && (len(others) > 0 || len(ahead) >= mode.Limit) {`,
		`if others = others[:len(others)*(1-min(1, mode.Limit))]; mode.Limit > 0 && len(ahead) >= mode.Limit {`,
	}, nil},
	{"Z42.3", "a waiter for a permit watches the oldest holder", zooKeeper, change{
		"zklock/wait.go",
		`	line = line[max(0, len(line)-k-1):]
	return`,
		`	line = line[:1]
	return`,
	}, nil},

	{"S4", "a permit that was given up is kept", zooKeeper, change{
		"zklock/recipe.go",
		`		if !granted { // also if`,
		`		if !granted && req.Mode.Limit == 0 { // also if`,
	}, nil},
	{"S5", "a permit is taken however many are", zooKeeper, change{
		"zklock/rule.go",
		`len(ahead) >= mode.Limit) {`,
		`len(ahead) > mode.Limit) {`,
	}, nil},
	{"S7", "a break reaches the oldest of those who share a key", dynamoDB, change{
		"driver/info.go",
		`one.Holder, one.Holders, one.Queue = h, nil, nil`,
		`one.Holder, one.Holders, one.Queue, one.Grant = h, nil, nil, i.Grant`,
	}, nil},
	{"S8", "a reader that is gone comes back to observers", zooKeeper, change{
		"observe.go",
		`if len(kept) > 0 && len(kept) < len(info.Holders) {`,
		`if false && len(kept) < len(info.Holders) {`,
	}, nil},
	{"S8.2", "a late renewal brings a reader that is gone back to observers", dynamoDB, change{
		"observe.go",
		`info, ok := o.withoutEnded(info)`,
		`ok := true`,
	}, nil},
}
