package faultproxy

import (
	"net"
	"testing"
	"time"
)

// The kernel must not hand out the port of a refusing proxy as a free one.
func TestCutKeepsThePort(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	p.Cut()
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().String() == p.Addr() {
			t.Fatal("the kernel handed out the port")
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	heal(t, p)
	c := dial(t, p)
	send(t, c, "a")
	expect(t, c, "a")
}

func TestStartOn(t *testing.T) {
	t.Parallel()
	first := start(t, echoServer(t))
	if _, err := StartOn(first.Addr(), "127.0.0.1:1"); err == nil {
		t.Fatal("two proxies on one port")
	}
	_ = first.Close()
	second, err := StartOn(first.Addr(), echoServer(t))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Addr() != first.Addr() {
		t.Fatalf("listens on %s, want %s", second.Addr(), first.Addr())
	}
	c := dial(t, second)
	send(t, c, "a")
	expect(t, c, "a")
}

// The proxy must also reset a connection that the kernel accepted before the
// listener closed.
func TestCutCatchesTheConnectionBeingAccepted(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := start(t, echoServer(t))
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.Cut()
	p.admit(accepted.(*net.TCPConn))
	_ = c.SetDeadline(time.Now().Add(patience))
	expectReset(t, c)
}

func TestCloseFreesThePort(t *testing.T) {
	t.Parallel()
	upstream := echoServer(t)
	var err error
	for range 5 { // anybody may take a port that has just been freed
		p := start(t, upstream)
		_ = p.Close()
		local, _ := net.ResolveTCPAddr("tcp", p.Addr())
		// Unlike a listener, a dialler does not share its local port.
		d := net.Dialer{LocalAddr: local}
		var c net.Conn
		if c, err = d.Dial("tcp", upstream); err == nil {
			_ = c.Close()
			return
		}
	}
	t.Fatal(err)
}
