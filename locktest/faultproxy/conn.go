package faultproxy

import (
	"bufio"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
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

	broken atomic.Bool // a write failed: one side is gone for good

	mu     sync.Mutex
	ended  bool
	client *socket
	server *socket
	late   *socket // the server's side, when a late message is to reach it; the connection has ended
	pipes  []*pipe
}

func newConn(p *Proxy, id int, client socket) *conn {
	c := &conn{p: p, id: id, client: &client}
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
	server, err := c.p.opts.Dial(c.ctx, "tcp", upstream)
	if err != nil || !c.join(socket{server}) {
		return
	}
	var wg sync.WaitGroup
	for _, pp := range c.pipes {
		wg.Go(pp.read)
		wg.Go(pp.write)
	}
	wg.Wait()
	// Both streams have ended; earlier writes must still arrive.
	c.finish()
	if c.late != nil {
		_ = c.late.Close()
	}
}

// join adds the upstream's side, unless the connection has ended meanwhile.
func (c *conn) join(server socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		server.reset()
		return false
	}
	c.server = &server
	var toServer, toClient bufio.SplitFunc
	if c.p.opts.Split != nil {
		toServer, toClient = c.p.opts.Split(c.id)
	}
	c.pipes = []*pipe{
		newPipe(c, ToServer, toServer, c.client, c.server),
		newPipe(c, ToClient, toClient, c.server, c.client),
	}
	return true
}

// reset ends the connection with RST on both sides: bytes in flight are lost, and both peers notice at once.
func (c *conn) reset() { c.end(true) }

// deliverLate ends the connection for the client. The message reaches the server after a while, and an answer ends the server's side.
func (c *conn) deliverLate(message []byte) {
	const patience = 10 * time.Second // of the server
	c.mu.Lock()
	server := c.server
	if c.ended {
		server = nil
	}
	c.late, c.server = server, nil
	c.mu.Unlock()
	c.reset()
	if server == nil {
		return
	}
	context.AfterFunc(c.p.ctx, func() { _ = server.Close() })
	select {
	case <-time.After(c.p.opts.LateRequest):
		_, _ = server.Write(message)
		_ = server.SetReadDeadline(time.Now().Add(patience))
	case <-c.p.ctx.Done():
	}
}

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
	for _, side := range []*socket{c.client, c.server} {
		switch {
		case side == nil:
		case rst:
			side.reset()
		default:
			_ = side.Close()
		}
	}
}
