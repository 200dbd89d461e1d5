// Package engine lets an example run on any engine of holdfast, chosen by a
// flag. A further engine is one more case in [Flags.Open].
package engine

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/zklock"
)

// An Engine makes clients that compete with each other.
type Engine struct {
	Name string
	// NewClient connects. owner is the default owner name of what it holds.
	NewClient func(ctx context.Context, owner string) (*Client, error)
}

// A Client is one client of an engine: the part that is the same on all of
// them, which is all that the examples use.
type Client struct {
	*holdfast.Locker

	// Cut takes the client off the network, Heal undoes it. Both are nil on
	// engines where that takes more than a call.
	Cut, Heal func()
}

// Flags are what the user said on the command line.
type Flags struct {
	engine  string
	servers string
}

// AddFlags declares -engine and -servers.
func AddFlags(flags *flag.FlagSet) *Flags {
	f := &Flags{}
	flags.StringVar(&f.engine, "engine", "", "memory or zookeeper (default: zookeeper if -servers is given, else memory)")
	flags.StringVar(&f.servers, "servers", "", "ZooKeeper servers, host:port,host:port (default with -engine zookeeper: 127.0.0.1:2181)")
	return f
}

// Open returns the engine that was asked for. Nothing is connected yet.
func (f *Flags) Open() (*Engine, error) {
	switch {
	case f.engine == "memory" && f.servers != "":
		return nil, fmt.Errorf("-servers has no meaning with -engine memory")
	case f.engine == "memory", f.engine == "" && f.servers == "":
		return Memory(), nil
	case f.engine == "zookeeper" && f.servers == "":
		return ZooKeeper("127.0.0.1:2181"), nil
	case f.engine == "zookeeper", f.engine == "":
		return ZooKeeper(strings.Split(f.servers, ",")...), nil
	}
	return nil, fmt.Errorf("-engine %q: there are memory and zookeeper", f.engine)
}

// Memory is an engine within this process. Its lease is short, so that nobody
// has to wait long to see one run out.
func Memory() *Engine {
	store := memlock.NewStore()
	return &Engine{Name: "memory", NewClient: func(_ context.Context, owner string) (*Client, error) {
		client, err := memlock.New(&memlock.Options{Store: store, Owner: owner, Lease: 2 * time.Second})
		if err != nil {
			return nil, err
		}
		return &Client{
			Locker: client.Locker,
			Cut:    func() { store.Cut(client) },
			Heal:   func() { store.Heal(client) },
		}, nil
	}}
}

// ZooKeeper is an engine on real servers.
func ZooKeeper(servers ...string) *Engine {
	return &Engine{Name: "zookeeper", NewClient: func(ctx context.Context, owner string) (*Client, error) {
		client, err := zklock.Dial(ctx, servers, &zklock.Options{Owner: owner})
		if err != nil {
			return nil, err
		}
		return &Client{Locker: client.Locker}, nil
	}}
}
