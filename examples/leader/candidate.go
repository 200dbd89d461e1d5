package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// A candidate answers requests while it leads.
type candidate struct {
	name     string
	out      *teller
	election *holdfast.Election

	answering sync.RWMutex // held for reading while a request is answered
}

// stand is a candidate until ctx ends. It calls connected, if that is not nil.
func stand(ctx context.Context, out *teller, e *engine.Engine, name string, connected func(*engine.Client)) error {
	client, err := e.NewClient(ctx, name)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			out.say(name, "closes its client: %v", err)
		}
	}()
	if connected != nil {
		connected(client)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()

	c := &candidate{name: name, out: out}
	c.election, err = client.Election(key, &holdfast.ElectionOptions{
		Candidacy: []holdfast.Option{holdfast.WithData([]byte(address))},
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	var observer sync.WaitGroup
	observer.Go(func() { c.follow(ctx) })
	defer observer.Wait()
	out.say(name, "stands for election, at %s", address)
	err = c.election.Run(ctx, c.lead)
	out.say(name, "has left")
	return unlessOver(ctx, err)
}

// lead is a term: requests are answered until ctx ends.
func (c *candidate) lead(ctx context.Context, term *holdfast.Lock) error {
	c.out.say(c.name, "leads, token %d", term.Token())
	<-ctx.Done()
	// The key is given back when this returns. Wait for what is being answered.
	c.answering.Lock()
	defer c.answering.Unlock()
	c.out.say(c.name, "stops, token %d: %v", term.Token(), context.Cause(ctx))
	return ctx.Err()
}

// ServeHTTP answers a request, if this process leads.
func (c *candidate) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.answering.RLock()
	defer c.answering.RUnlock()
	term := c.election.Term() // it looks at the clock
	if term == nil {
		http.Error(w, "another leads", http.StatusServiceUnavailable)
		return
	}
	time.Sleep(10 * time.Millisecond) // the work; it would give the token to what it writes to
	fmt.Fprintln(w, c.name, term.Token())
}

// follow says who leads, until ctx ends.
func (c *candidate) follow(ctx context.Context) {
	for leader, err := range c.election.Observe(ctx) {
		switch {
		case err != nil:
			if ctx.Err() == nil {
				c.out.say(c.name, "no longer sees who leads: %v", err)
			}
		case leader.Stale:
			c.out.say(c.name, "cannot see who leads")
		case leader.Held:
			c.out.say(c.name, "sees that %s leads, at %s", leader.Owner, leader.Data)
		default:
			c.out.say(c.name, "sees that there is no leader")
		}
	}
}
