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

// Leases are short, so that users see one expire soon. Those of a
// server must outlast a slow reply.
const (
	memoryLease = time.Second
	serverLease = 6 * time.Second
)

// openTimeout bounds the search for a server. It is short, since nothing is printed
// meanwhile.
const openTimeout = 10 * time.Second

// An Engine makes clients that compete with each other.
type Engine struct {
	Name  string // as -engine has it
	Where string // for people to read
	Local bool   // within this process: no other can take part
	Lease time.Duration

	// Poll is how late a waiter may notice a release; 0 on engines with a queue.
	Poll time.Duration

	// NewClient connects. owner is the default owner name of its locks.
	NewClient func(ctx context.Context, owner string) (*Client, error)
}

// A Client is one client of an engine. Most examples use only the part that is the
// same on all engines.
type Client struct {
	*holdfast.Client

	// Cut disconnects the client, Heal reconnects it. Both are nil on ZooKeeper.
	Cut, Heal func()

	// Nil on other engines.
	ZooKeeper *zklock.Client
	Dynamo    *dynamolock.Client
	API       DynamoAPI
}

// Memory is an engine within this process.
func Memory() *Engine { return MemoryWithLease(memoryLease) }

// MemoryWithLease is [Memory] for tests that a machine which stands still must not fail: their locks outlast that.
func MemoryWithLease(lease time.Duration) *Engine {
	store := memlock.NewStore()
	return &Engine{
		Name: "memory", Where: "the memory of this process", Local: true, Lease: lease,
		NewClient: func(_ context.Context, owner string) (*Client, error) {
			client, err := memlock.New(&memlock.Options{Store: store, Owner: owner, Lease: lease})
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
