package faulthttp

import (
	"net"
	"sync"
	"time"
)

// idle is how long a connection to the server is kept for the next request. Node.js closes idle ones after
// 5 seconds; a request sent at that moment would fail without an injected fault.
const idle = 3 * time.Second

// listener registers each accepted connection with the proxy.
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

// admit registers a connection, unless the proxy now refuses new ones: the kernel may have accepted it
// before that.
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

// proxied is a connection of a client. The proxy may reset it; it counts until its server goroutine closes
// it.
type proxied struct {
	*net.TCPConn
	p    *Proxy
	once sync.Once
}

// reset closes the connection with RST: the client sees it at once, and bytes in flight are lost.
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
