package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// casting describes the run for which a stage is built.
type casting struct {
	Slots int                 // client processes
	Holds func(slot int) bool // whether the process in a slot holds a lock
	Seed  uint64              // for random settings, such as limits of the servers
	Dir   string              // for files that help when a run has failed
}

// stage is an engine's part of a run: servers, the proxies between them and the clients, and the faults of both.
type stage interface {
	// deck is the faults of the stage, including the faults of processes, clocks and the operator, which the run performs.
	deck() []nemesis.Kind
	// servers is how many servers a plan may name.
	servers() int
	// login returns the addresses for the processes in a slot; each slot has proxies of its own.
	login(slot int) login
	// strike begins a fault of the network or of the servers. It returns when the fault is in force, with its target; end
	// ends it and returns when it is over. A fault that ends on its own has a nil end; one that hit nothing has no target.
	// Faults may overlap, but server faults do not.
	strike(ctx context.Context, f nemesis.Fault) (target string, end func(context.Context) error, err error)
	// heal ends all remaining faults, and returns when all servers serve.
	heal(ctx context.Context) error
	// direct returns the addresses for the operator's client: only faults of the servers affect it.
	direct() login
	// stall is how long, after the faults, damaged servers may hold up a client. It affects each client at most once, but
	// possibly one after another in the same queue.
	stall() time.Duration
	// residue reports the grants that are left in the engine after all clients have ended and every key was acquired and
	// released once more: one line each.
	residue(ctx context.Context, keys []string) (left []string, err error)
	// close stops the servers and proxies.
	close()
}

// login is how a client process finds its engine, sent as JSON.
type login struct {
	Engine   string   `json:"engine"`             // whose clients connect to it
	Servers  []string `json:"servers,omitempty"`  // of ZooKeeper: host:port
	Endpoint string   `json:"endpoint,omitempty"` // of DynamoDB and MongoDB: a URL
	Table    string   `json:"table,omitempty"`
	// Mode is an option of simulated clients of DynamoDB.
	Mode dynamolock.Mode `json:"mode,omitempty"`
	// Lease is what clients ask for, and how long others wait for a silent holder: the session timeout, or the lease of an
	// item.
	Lease time.Duration `json:"lease"`
	// Session is the session timeout that a client of ZooKeeper asks for instead of Lease: servers may give it more.
	Session time.Duration `json:"session,omitempty"`
	// Heartbeat is an option of clients of ZooKeeper, as is Margin of all; 0 is the default.
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	Margin    time.Duration `json:"margin,omitempty"`
	// Credentials are of a client of ZooKeeper, "user:password"; "" for none.
	Credentials string `json:"credentials,omitempty"`
}

// locker is a client of an engine, in a client process.
type locker struct {
	*holdfast.Client
	// breakNow breaks a grant at once; nil where Break does just that.
	breakNow func(context.Context, holdfast.Info) error
}
