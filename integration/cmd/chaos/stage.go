package main

import (
	"context"

	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// stage is what an engine brings to a run: servers, the proxies between them and the clients, and the faults that befall both.
type stage interface {
	// deck is what faults the stage has, including those that the run does by itself: of processes, clocks and the operator.
	deck() []nemesis.Kind
	// servers is how many servers a plan may name.
	servers() int
	// login is what the processes in a slot connect to; each slot has proxies of its own.
	login(slot int) login
	// strike begins a fault of the network or of the servers. It returns when the fault is in force, with what it befalls; end
	// ends it and returns when it is over. A fault that is over by itself has a nil end. Faults may overlap in time, those of
	// the servers (serverFault) do not.
	strike(ctx context.Context, f nemesis.Fault) (target string, end func(context.Context) error, err error)
	// heal ends everything that is left of faults, and returns when all servers serve.
	heal(ctx context.Context) error
	// direct is what the operator's own client connects to: it meets no fault but those of the servers.
	direct() login
	// residue tells, when all clients have gone and the keys have been taken and released once more, what is left in the
	// engine that should not be: one line each.
	residue(ctx context.Context, keys []string) ([]string, error)
	// close stops the servers and proxies.
	close()
}

// login is how a client process finds its engine. It travels as JSON.
type login struct {
	Engine   string   `json:"engine"`             // "zookeeper" or "dynamodb"
	Servers  []string `json:"servers,omitempty"`  // of ZooKeeper: host:port
	Endpoint string   `json:"endpoint,omitempty"` // of DynamoDB: a URL
	Table    string   `json:"table,omitempty"`
}

// serverFault reports whether a fault is one of the servers and not of one client's network.
func serverFault(k nemesis.Kind) bool {
	switch k {
	case nemesis.FollowerCutOff, nemesis.LeaderCutOff, nemesis.LinkCut, nemesis.LeaderKilled, nemesis.LeaderPaused,
		nemesis.FollowerPaused, nemesis.ServerPaused, nemesis.RollingRestart:
		return true
	}
	return false
}
