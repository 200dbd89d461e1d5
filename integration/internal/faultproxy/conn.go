package faultproxy

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// conn is one client connection and its counterpart to the upstream.
type conn struct {
	p      *Proxy
	id     int
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	greet  func(io.Reader) ([]byte, error)
	silent bool // never forwarded: half-open, or made during a black hole
	doomed bool // to be reset by Heal; guarded by Proxy.mu

	raw     atomic.Bool // the client does not speak in ZooKeeper frames
	broken  atomic.Bool // a write failed: one side is gone for good
	pending pending

	mu     sync.Mutex
	ended  bool
	client socket
	server socket
	pipes  []*pipe
}

func newConn(p *Proxy, id int, client socket) *conn {
	c := &conn{p: p, id: id, client: client}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	return c
}

// serve runs the connection and returns when all its goroutines have ended.
func (c *conn) serve(upstream string) {
	if c.silent {
		// Reading detects that the client has left.
		_, _ = io.Copy(io.Discard, c.client)
		return
	}
	server, err := c.p.dial(c.ctx, upstream)
	if err != nil {
		return
	}
	if !c.join(server) {
		return
	}
	var wg sync.WaitGroup
	for _, pp := range c.pipes {
		wg.Go(pp.read)
		wg.Go(pp.write)
	}
	wg.Wait()
	for _, pp := range c.pipes {
		pp.settle()
	}
	// Both streams have ended; earlier writes must still arrive.
	c.finish()
}

// join adds the upstream's side, unless the connection has ended meanwhile.
func (c *conn) join(server socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		server.reset()
		return false
	}
	c.server = server
	c.pipes = []*pipe{
		newPipe(c, ToServer, c.client, server),
		newPipe(c, ToClient, server, c.client),
	}
	return true
}

// reset ends the connection with RST on both sides: bytes in flight are lost, and both peers notice at once.
func (c *conn) reset() { c.end(true) }

// finish ends the connection with FIN on both sides: earlier writes still arrive.
func (c *conn) finish() { c.end(false) }

func (c *conn) end(rst bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	c.cancel()
	for _, side := range []socket{c.client, c.server} {
		switch {
		case side == nil:
		case rst:
			side.reset()
		default:
			_ = side.Close()
		}
	}
}
