package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// casting is what a stage is built for. Each engine has a function that takes it: startZooKeeper, startDynamo.
type casting struct {
	Slots int    // client processes
	Seed  uint64 // for settings that are drawn, such as limits of the servers
	Dir   string // for files that are worth reading when a run has failed
}

// stage is what an engine brings to a run: servers, the proxies between them and the clients, and the faults that befall both.
type stage interface {
	// deck is what faults the stage has, including those that the run does by itself: of processes, clocks and the operator.
	deck() []nemesis.Kind
	// servers is how many servers a plan may name.
	servers() int
	// login is what the processes in a slot connect to; each slot has proxies of its own.
	login(slot int) login
	// strike begins a fault of the network or of the servers. It returns when the fault is in force, with what it befalls; end
	// ends it and returns when it is over. A fault that is over by itself has a nil end; one for which there was nothing to
	// befall has no target. Faults may overlap in time, those of the servers do not.
	strike(ctx context.Context, f nemesis.Fault) (target string, end func(context.Context) error, err error)
	// heal ends everything that is left of faults, and returns when all servers serve.
	heal(ctx context.Context) error
	// direct is what the operator's own client connects to: it meets no fault but those of the servers.
	direct() login
	// stall is for how long, after the faults, the servers may hold up a client by what has become of them. It meets each client
	// once at most, but may meet them one after the other, in the same queue.
	stall() time.Duration
	// residue tells, when all clients have gone and the keys have been taken and released once more, what is left in the
	// engine that should not be, and in what the servers differ from each other, which is their fault: one line each.
	residue(ctx context.Context, keys []string) (left, diverged []string, err error)
	// close stops the servers and proxies.
	close()
}

// login is how a client process finds its engine. It travels as JSON.
type login struct {
	Engine   string   `json:"engine"`             // "zookeeper" or "dynamodb"
	Servers  []string `json:"servers,omitempty"`  // of ZooKeeper: host:port
	Endpoint string   `json:"endpoint,omitempty"` // of DynamoDB: a URL
	Table    string   `json:"table,omitempty"`
	Expiry   string   `json:"expiry,omitempty"` // of DynamoDB: the attribute for Time to Live, if this client was told of it
	// Lease is what clients are to ask for, and what others wait for when a holder is silent: the session timeout, or the lease
	// of an item.
	Lease time.Duration `json:"lease"`
}

// locker is a client of an engine, in a client process. Each engine has a function that opens one: openZooKeeper, openDynamo.
type locker struct {
	*holdfast.Client
	// breakNow breaks a grant without consideration for its holder; nil where Break does just that.
	breakNow func(context.Context, holdfast.Info) error
}
