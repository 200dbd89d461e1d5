// Package maplock is an engine of holdfast over a map; docs/engine.md goes through it step by step. store.go stands for the database,
// client.go opens a client, and engine.go implements the contract. Each grant has its own lease; there is no queue, and nothing is shared.
package maplock

import (
	"context"
	crypto "crypto/rand"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
)

// Options are the settings of a client.
type Options struct {
	Lease   time.Duration
	Owner   string
	OnEvent func(holdfast.Event)
	Clock   driver.Clock // for tests
}

// A Client acquires locks from a store.
type Client struct {
	*holdfast.Client
	conn *conn
}

// engine implements driver.Driver.
type engine struct {
	*conn
	host  driver.Host
	lease time.Duration
	id    string // begins the names of the client's grants
	ping  *task.Repeated
}

// New returns a client.
func New(store *Store, o Options) (*Client, error) {
	e := &engine{conn: &conn{store: store}, lease: o.Lease, id: crypto.Text() + "-"}
	client, err := holdfast.New(driver.Config{
		Owner: o.Owner, Clock: o.Clock, Lease: func() time.Duration { return o.Lease },
	}, o.OnEvent, func(host driver.Host) (driver.Driver, error) {
		e.host = host
		host.SetConnected(true)
		e.ping = task.Repeat(context.Background(), host, e.poll(), func(ctx context.Context) time.Duration {
			err := e.send(ctx, func(table, time.Time) {})
			if ctx.Err() == nil {
				host.SetConnected(err == nil)
			}
			return e.poll()
		})
		return e, nil
	})
	return &Client{client, e.conn}, err
}

// poll returns the pause between two polls, with jitter: clients that start together must not poll in step.
func (e *engine) poll() time.Duration { return e.lease/20 - rand.N(e.lease/40) }

// send sends one request, with a time limit.
func (e *engine) send(ctx context.Context, f request) error {
	ctx, cancel := context.WithTimeout(ctx, e.lease/8)
	defer cancel()
	return e.do(ctx, f)
}

// retry sends a request until it is answered, or ctx ends.
func (e *engine) retry(ctx context.Context, f request) error {
	return task.Retry(ctx, e.host, e.lease/100, e.lease/8, func() error { return e.send(ctx, f) })
}
