package faultproxy

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

const (
	patience = 20 * time.Second      // for what must happen
	pause    = 60 * time.Millisecond // to see that something does not happen
)

// serve runs handle for each connection to the returned address; the connection is closed when handle returns.
func serve(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return l.Addr().String()
}

func started(t testing.TB, p *Proxy, err error) *Proxy {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func start(t testing.TB, upstream string) *Proxy {
	t.Helper()
	p, err := Start(upstream, Options{})
	return started(t, p, err)
}

// client is the client's end of a connection.
type client struct {
	net.Conn
	t testing.TB
}

func dial(t testing.TB, p *Proxy) client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return client{c, t}
}

func (c client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatalf("write %q: %v", s, err)
	}
}

func (c client) expect(want string) {
	c.t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != want {
		c.t.Fatalf("read %q, %v; want %q", buf, err, want)
	}
}

// echo checks that an echo server answers.
func (c client) echo(s string) {
	c.t.Helper()
	c.send(s)
	c.expect(s)
}

// silent fails if something arrives, or the connection ends.
func (c client) silent() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(pause))
	var timeout net.Error
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		c.t.Fatalf("read %d bytes, %v; want silence on an open connection", n, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
}

// ends fails unless the connection ends with want: io.EOF or a reset.
func (c client) ends(want error) {
	c.t.Helper()
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, want) {
		c.t.Fatalf("read %d bytes, %v; want %v", n, err, want)
	}
}

const reset = syscall.ECONNRESET

func refused(t *testing.T, p *Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial: %v; want connection refused", err)
	}
}

func heal(t *testing.T, p *Proxy) {
	t.Helper()
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
}
