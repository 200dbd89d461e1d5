package engine

import (
	"cmp"
	"context"
	"flag"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/zklock"
)

// zooKeeperFlags declares the flag of the servers.
func zooKeeperFlags(flags *flag.FlagSet) func() (*Engine, error) {
	servers := flags.String("servers", cmp.Or(os.Getenv("ZOOKEEPER_SERVERS"), "127.0.0.1:2181"),
		"ZooKeeper: `addresses` of servers, host:port,host:port; variable ZOOKEEPER_SERVERS")
	return func() (*Engine, error) { return ZooKeeper(strings.Split(*servers, ",")...), nil }
}

// ZooKeeper is an engine on real servers.
func ZooKeeper(servers ...string) *Engine {
	return &Engine{
		Name: "zookeeper", Where: "ZooKeeper at " + strings.Join(servers, ","), Lease: serverLease,
		NewClient: func(ctx context.Context, owner string) (*Client, error) {
			ctx, cancel := context.WithTimeout(ctx, openTimeout)
			defer cancel()
			client, err := zklock.Dial(ctx, servers, &zklock.Options{Owner: owner, SessionTimeout: serverLease})
			if err != nil {
				return nil, err
			}
			return &Client{Client: client.Client, ZooKeeper: client}, nil
		},
	}
}
