package main

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// An engine is what a run takes place on.
type engine struct {
	name, means string // for -engine, and its help
	start       func(context.Context, casting) (stage, error)
	open        func(context.Context, clientConfig) (locker, error) // in a client process
	// namesakes says that a holder that has lost its lock sees who has it, and not how that came.
	namesakes bool
	// endless says that locks do not expire: the operator breaks those of processes that have ended. None is shared.
	endless bool
	// watched says that each who wants a lock of a holder that is gone has to watch it for a lease.
	watched bool
	// queued says that requests are served in the order of their arrival.
	queued bool
}

// engines are those that there are. A further one has a line here, in a file of its own what that names, and in login what its
// clients need.
var engines = []engine{
	{"zookeeper", "", startZooKeeper, openZooKeeper, false, false, false, true},
	{"reconfig", "ZooKeeper with members that leave and join", startReconfig, openZooKeeper, false, false, false, true},
	{"dynamodb", "", startDynamo, openDynamo, true, false, true, false},
	{"ttl", "DynamoDB with Time to Live", startTTL, openDynamo, true, false, true, false},
	{"closed", "DynamoDB with locks that do not expire", startClosed, openDynamo, true, true, false, false},
}

// engineOf returns the engine of a name, or nil.
func engineOf(name string) *engine {
	for i := range engines {
		if engines[i].name == name {
			return &engines[i]
		}
	}
	return nil
}

// engineNames are the names of all.
func engineNames() (names []string) {
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// engineUsage is the help of -engine.
func engineUsage() string {
	var b strings.Builder
	b.WriteString("the `engine`: ")
	for _, e := range engines {
		b.WriteString(e.name)
		if e.means != "" {
			b.WriteString(" (" + e.means + ")")
		}
		b.WriteString(", ")
	}
	return b.String() + "or all of them in turn"
}

// open connects to an engine, in a client process. The clock stands for both of the machine's clocks.
func open(ctx context.Context, config clientConfig, clk driver.Clock) (locker, error) {
	return engineOf(config.Login.Engine).open(clock.With(ctx, clk), config)
}
