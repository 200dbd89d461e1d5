package faulthttp

import (
	"net"
	"sync"
	"time"
)

// idle is how long a connection to the server is kept for the next request. Node.js closes idle ones after 5 seconds; a request
// sent at that moment would fail by itself.
const idle = 3 * time.Second

// listener gives the proxy's server connections that the proxy knows.
type listener struct {
	net.Listener
	p *Proxy
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.p.admit(l.Listener, conn.(*net.TCPConn)); c != nil {
			return c, nil
		}
	}
}

// admit registers a connection, unless new ones are refused by now: the kernel may have accepted it before.
func (p *Proxy) admit(from net.Listener, conn *net.TCPConn) *proxied {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &proxied{TCPConn: conn, p: p}
	if p.listener != from {
		c.reset()
		return nil
	}
	p.conns[c] = struct{}{}
	p.wg.Add(1)
	return c
}

// proxied is a connection of a client. The proxy may reset it; it counts until whoever serves it closes it.
type proxied struct {
	*net.TCPConn
	p    *Proxy
	once sync.Once
}

// reset closes the connection with RST: the client learns of it at once, and what was on its way is lost.
func (c *proxied) reset() {
	_ = c.SetLinger(0)
	_ = c.TCPConn.Close()
}

// Close implements [net.Conn].
func (c *proxied) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() {
		c.p.mu.Lock()
		delete(c.p.conns, c)
		c.p.mu.Unlock()
		c.p.wg.Done()
	})
	return err
}
