package main

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// An engine is a kind of server, with its clients and faults.
type engine struct {
	name  string
	start func(context.Context, casting) (stage, error)       // nil: the engine is only in simulations
	open  func(context.Context, clientConfig) (locker, error) // in a client process
	// namesakes says that a lost holder sees the owner of its successor and nothing else.
	namesakes bool
	// endless says that locks do not expire: the operator breaks the locks of dead processes. None is shared.
	endless bool
	// watched says that a client has to watch a dead holder for a lease.
	watched bool
	// queued says that requests are served in the order of their arrival.
	queued bool
}

var engines = []engine{
	{name: "zookeeper", start: startZooKeeper, open: openZooKeeper, queued: true},
	{name: "dynamodb", start: startDynamo, open: openDynamo, namesakes: true, watched: true},
	{name: "mongodb", start: startMongo, open: openMongo, namesakes: true, watched: true},
	{name: "ttl", namesakes: true, watched: true},    // DynamoDB with Time to Live
	{name: "closed", namesakes: true, endless: true}, // DynamoDB with locks that do not expire
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

// engineNames are the names of the engines with servers.
func engineNames() (names []string) {
	for _, e := range engines {
		if e.start != nil {
			names = append(names, e.name)
		}
	}
	return names
}

// open connects to an engine, in a client process. The clock stands for both of the machine's clocks.
func open(ctx context.Context, config clientConfig, clk driver.Clock) (locker, error) {
	return engineOf(config.Login.Engine).open(clock.With(ctx, clk), config)
}
