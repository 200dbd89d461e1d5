// Package engine lets an example run on any engine of holdfast, chosen by a flag
// or by the environment.
package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/zklock"
)

// Leases are short, so that nobody has to wait long to see one run out. Those of
// a server must outlast a slow answer.
const (
	memoryLease = time.Second
	serverLease = 6 * time.Second
)

// openTimeout is how long to look for a server, whatever else there is time for.
// Nothing is said meanwhile, so it is not long.
const openTimeout = 10 * time.Second

// An Engine makes clients that compete with each other.
type Engine struct {
	Name  string // memory, zookeeper or dynamodb
	Where string // for people to read
	Local bool   // within this process, so that no other can take part
	Lease time.Duration

	// Poll is how late a waiter may notice a release. It is 0 on engines that
	// keep a queue and wake the next in it.
	Poll time.Duration

	// NewClient connects. owner is the default owner name of what it holds; hooks
	// are told of what happens in it.
	NewClient func(ctx context.Context, owner string, hooks ...holdfast.Hooks) (*Client, error)
}

// A Client is one client of an engine: the part that is the same on all of
// them, which is all that most examples use.
type Client struct {
	*holdfast.Client

	// Cut takes the client off the network, Heal undoes it. Both are nil on
	// engines where that takes more than a call.
	Cut, Heal func()

	// ZooKeeper is nil on other engines, and so are Dynamo and API on other
	// engines than DynamoDB.
	ZooKeeper *zklock.Client
	Dynamo    *dynamolock.Client
	API       DynamoAPI
}

// Memory is an engine within this process.
func Memory() *Engine {
	store := memlock.NewStore()
	return &Engine{
		Name: "memory", Where: "the memory of this process", Local: true, Lease: memoryLease,
		NewClient: func(_ context.Context, owner string, hooks ...holdfast.Hooks) (*Client, error) {
			client, err := memlock.New(&memlock.Options{
				Store: store, Owner: owner, Lease: memoryLease, Hooks: holdfast.JoinHooks(hooks...),
			})
			if err != nil {
				return nil, err
			}
			return &Client{
				Client: client.Client,
				Cut:    func() { store.Cut(client) },
				Heal:   func() { store.Heal(client) },
			}, nil
		},
	}
}

// ZooKeeper is an engine on real servers.
func ZooKeeper(where string, servers ...string) *Engine {
	return &Engine{
		Name: "zookeeper", Where: "ZooKeeper at " + where, Lease: serverLease,
		NewClient: func(ctx context.Context, owner string, hooks ...holdfast.Hooks) (*Client, error) {
			ctx, cancel := context.WithTimeout(ctx, openTimeout)
			defer cancel()
			client, err := zklock.Dial(ctx, servers, &zklock.Options{
				Owner: owner, SessionTimeout: serverLease, Hooks: holdfast.JoinHooks(hooks...),
			})
			if err != nil {
				return nil, err
			}
			return &Client{Client: client.Client, ZooKeeper: client}, nil
		},
	}
}
