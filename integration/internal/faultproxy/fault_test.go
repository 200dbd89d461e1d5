package faultproxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestCutResetsRefusesAndHeals(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	for range 3 {
		c := dial(t, p)
		send(t, c, "a")
		expect(t, c, "a")
		p.Cut()
		expectReset(t, c)
		expectRefused(t, p)
		p.Cut()
		heal(t, p)
		heal(t, p)
		again := dial(t, p)
		send(t, again, "b")
		expect(t, again, "b")
	}
}

func TestCutResetsTheServersSide(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	p := start(t, serve(t, func(c net.Conn) {
		_, _ = c.Write([]byte("hello"))
		_, err := c.Read(make([]byte, 1))
		ended <- err
	}))
	expect(t, dial(t, p), "hello")
	p.Cut()
	if err := <-ended; err == nil || err == io.EOF {
		t.Fatalf("server read: %v; want a reset", err)
	}
}

func TestRefuseNewLeavesLiveConnections(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	send(t, c, "a")
	expect(t, c, "a")
	p.RefuseNew()
	expectRefused(t, p)
	send(t, c, "b")
	expect(t, c, "b")
	heal(t, p)
	send(t, c, "c")
	expect(t, c, "c")
	expect(t, func() net.Conn { n := dial(t, p); send(t, n, "d"); return n }(), "d")
}

func TestDropIsOnce(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	send(t, c, "a")
	expect(t, c, "a")
	p.Drop()
	expectReset(t, c)
	c = dial(t, p)
	send(t, c, "b")
	expect(t, c, "b")
}

// recorder is a server that reports what it gets, and sends "tick" on demand.
type recorder struct {
	addr string
	got  chan string // one per read; "end" when the stream ends
	tick chan struct{}
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{got: make(chan string, 100), tick: make(chan struct{}, 10)}
	r.addr = serve(t, func(c net.Conn) {
		done := make(chan struct{})
		defer close(done)
		go func() {
			for {
				select {
				case <-r.tick:
					_, _ = io.WriteString(c, "tick")
				case <-done:
					return
				}
			}
		}()
		buf := make([]byte, 100)
		for {
			n, err := c.Read(buf)
			if n > 0 {
				r.got <- string(buf[:n])
			}
			if err != nil {
				r.got <- "end"
				return
			}
		}
	})
	return r
}

func (r *recorder) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-r.got:
		if got != want {
			t.Fatalf("server got %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("server got nothing, want %q", want)
	}
}

func (r *recorder) expectNothing(t *testing.T) {
	t.Helper()
	select {
	case got := <-r.got:
		t.Fatalf("server got %q", got)
	case <-time.After(pause):
	}
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	for _, dir := range []Direction{ToServer, ToClient, Both} {
		t.Run(dir.String(), func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t)
			p := start(t, r.addr)
			c := dial(t, p)
			send(t, c, "before")
			r.expect(t, "before")

			p.BlackHole(dir)
			send(t, c, "lost")
			r.tick <- struct{}{}
			if dir&ToServer != 0 {
				r.expectNothing(t)
			} else {
				r.expect(t, "lost")
			}
			if dir&ToClient != 0 {
				expectSilence(t, c)
			} else {
				expect(t, c, "tick")
			}

			fresh := dial(t, p)
			send(t, fresh, "new")
			expectSilence(t, fresh)
			if dir&ToServer != 0 {
				r.expectNothing(t)
			} else {
				r.expect(t, "new")
			}

			heal(t, p)
			expectReset(t, c)
			expectReset(t, fresh)
			r.expect(t, "end")
			c = dial(t, p)
			send(t, c, "after")
			for got := ""; got != "after"; got = <-r.got {
				if got == "lost" || got == "new" && dir&ToServer != 0 {
					t.Fatalf("server got %q after Heal", got)
				}
			}
		})
	}
}

// A client that dies behind a black hole is, for the server, just silent.
func TestBlackHoleHidesTheEndOfAStream(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*net.TCPConn){
		"FIN": func(c *net.TCPConn) { _ = c.Close() },
		"RST": func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t)
			p := start(t, r.addr)
			c := dial(t, p)
			send(t, c, "before")
			r.expect(t, "before")
			p.BlackHole(ToServer)
			leave(c.(*net.TCPConn))
			r.tick <- struct{}{} // the client is gone
			r.tick <- struct{}{}
			r.expectNothing(t)
			heal(t, p)
			r.expect(t, "end")
		})
	}
}

func TestStallDelivers(t *testing.T) {
	t.Parallel()
	for _, dir := range []Direction{ToServer, ToClient, Both} {
		t.Run(dir.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, echoServer(t))
			c := dial(t, p)
			send(t, c, "a")
			expect(t, c, "a")
			p.Stall(dir)
			fresh := dial(t, p)
			var want strings.Builder
			for i := range 100 {
				s := fmt.Sprintf("%d,", i)
				want.WriteString(s)
				send(t, c, s)
			}
			send(t, fresh, "new")
			_ = fresh.(*net.TCPConn).CloseWrite()
			expectSilence(t, c)
			expectSilence(t, fresh)
			heal(t, p)
			expect(t, c, want.String())
			expect(t, fresh, "new")
			expectEOF(t, fresh)
			send(t, c, "z")
			expect(t, c, "z")
		})
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	p.Stall(ToClient)
	send(t, c, "a")
	expectSilence(t, c)
	p.Turn(ToClient)
	expect(t, c, "a")
	send(t, c, "b")
	expectSilence(t, c)
	heal(t, p)
	expectReset(t, c)
	again := dial(t, p)
	send(t, again, "c")
	expect(t, again, "c")
}

func TestDropDuringStall(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	send(t, c, "a")
	expect(t, c, "a")
	p.Stall(Both)
	send(t, c, "b")
	p.Drop()
	expectReset(t, c)
	eventually(t, "the connection is forgotten", func() bool { return p.Conns() == 0 })
}

func TestHalfOpen(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	old := dial(t, p)
	send(t, old, "a")
	expect(t, old, "a")
	p.HalfOpen()
	fresh := dial(t, p)
	send(t, fresh, "b")
	expectSilence(t, fresh)
	send(t, old, "c")
	expect(t, old, "c")

	leaver := dial(t, p)
	eventually(t, "three connections", func() bool { return p.Conns() == 3 })
	_ = leaver.Close()
	eventually(t, "two connections", func() bool { return p.Conns() == 2 })

	heal(t, p)
	expectReset(t, fresh)
	send(t, old, "d")
	expect(t, old, "d")
}
