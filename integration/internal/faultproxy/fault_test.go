package faultproxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestCutRefuseNewAndDrop(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault           func(*Proxy)
		resets, refuses bool
	}{
		"cut":        {(*Proxy).Cut, true, true},
		"refuse new": {(*Proxy).RefuseNew, false, true},
		"drop":       {(*Proxy).Drop, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, echoServer(t))
			for range 3 {
				c := dial(t, p)
				c.echo("a")
				tt.fault(p)
				if tt.refuses {
					refused(t, p)
				} else {
					dial(t, p).echo("b")
				}
				if tt.resets {
					c.ends(reset)
				} else {
					c.echo("c")
				}
				tt.fault(p)
				heal(t, p)
				heal(t, p)
				dial(t, p).echo("d")
			}
		})
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
	dial(t, p).expect("hello")
	p.Cut()
	if err := <-ended; err == nil || err == io.EOF {
		t.Fatalf("server read: %v; want a reset", err)
	}
}

// The proxy must also reset a connection that the kernel accepted before the listener closed.
func TestCutCatchesTheConnectionBeingAccepted(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	accepted := make(chan net.Conn)
	other := &Proxy{addr: serve(t, func(c net.Conn) { accepted <- c; <-accepted })}
	c := dial(t, other)
	p.Cut()
	conn := <-accepted
	p.admit(tcp{conn.(*net.TCPConn)})
	c.ends(reset)
	accepted <- nil
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

// expect waits until the server gets want; "" is nothing.
func (r *recorder) expect(t *testing.T, want string) {
	t.Helper()
	wait := patience
	if want == "" {
		wait = pause
	}
	got := ""
	select {
	case got = <-r.got:
	case <-time.After(wait):
	}
	if got != want {
		t.Fatalf("server got %q, want %q", got, want)
	}
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	for _, dir := range []Direction{ToServer, ToClient, Both} {
		t.Run(dir.String(), func(t *testing.T) {
			t.Parallel()
			// through is what arrives of s.
			through := func(s string) string {
				if dir&ToServer != 0 {
					return ""
				}
				return s
			}
			r := newRecorder(t)
			p := start(t, r.addr)
			c := dial(t, p)
			c.send("before")
			r.expect(t, "before")

			p.BlackHole(dir)
			c.send("lost")
			r.tick <- struct{}{}
			r.expect(t, through("lost"))
			if dir&ToClient != 0 {
				c.silent()
			} else {
				c.expect("tick")
			}
			fresh := dial(t, p)
			fresh.send("new")
			fresh.silent()
			r.expect(t, through("new"))

			heal(t, p)
			c.ends(reset)
			fresh.ends(reset)
			r.expect(t, "end")
			dial(t, p).send("after")
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
	for _, linger := range []int{-1, 0} { // FIN, RST
		r := newRecorder(t)
		p := start(t, r.addr)
		c := dial(t, p)
		c.send("before")
		r.expect(t, "before")
		p.BlackHole(ToServer)
		_ = c.Conn.(*net.TCPConn).SetLinger(linger)
		_ = c.Close()
		r.tick <- struct{}{} // the client is gone
		r.tick <- struct{}{}
		r.expect(t, "")
		heal(t, p)
		r.expect(t, "end")
	}
}

func TestStallDelivers(t *testing.T) {
	t.Parallel()
	for _, dir := range []Direction{ToServer, ToClient, Both} {
		t.Run(dir.String(), func(t *testing.T) {
			t.Parallel()
			p := start(t, echoServer(t))
			c := dial(t, p)
			c.echo("a")
			p.Stall(dir)
			fresh := dial(t, p)
			var want strings.Builder
			for i := range 100 {
				s := fmt.Sprintf("%d,", i)
				want.WriteString(s)
				c.send(s)
			}
			fresh.send("new")
			fresh.closeWrite()
			c.silent()
			fresh.silent()
			heal(t, p)
			c.expect(want.String())
			fresh.expect("new")
			fresh.ends(io.EOF)
			c.echo("z")

			p.Stall(dir)
			c.send("lost")
			p.Drop()
			c.ends(reset)
			eventually(t, "the connections are forgotten", func() bool { return p.Conns() == 0 })
		})
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	p.Stall(ToClient)
	c.send("a")
	c.silent()
	p.Turn(ToClient)
	c.expect("a")
	c.send("b")
	c.silent()
	heal(t, p)
	c.ends(reset)
	dial(t, p).echo("c")
}

func TestHalfOpen(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	old := dial(t, p)
	old.echo("a")
	p.HalfOpen()
	fresh := dial(t, p)
	fresh.send("b")
	fresh.silent()
	old.echo("c")

	leaver := dial(t, p)
	eventually(t, "three connections", func() bool { return p.Conns() == 3 })
	_ = leaver.Close()
	eventually(t, "two connections", func() bool { return p.Conns() == 2 })

	heal(t, p)
	fresh.ends(reset)
	old.echo("d")
}

// Delays of back-to-back messages overlap: one after the other, they would take half a minute instead of 0.3 s.
// A lower latency must not let later bytes overtake.
func TestLatency(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	const d, n = 150 * time.Millisecond, 100
	begin := time.Now()
	var want strings.Builder
	for i := range n {
		p.SetLatency(d - time.Duration(i)*time.Millisecond)
		s := string(rune(' ' + i%90))
		want.WriteString(s)
		c.send(s)
		time.Sleep(100 * time.Microsecond) // packets of their own
	}
	c.expect(want.String())
	took := time.Since(begin)
	if took < 2*(d-n*time.Millisecond) {
		t.Errorf("a round trip took %v, less than twice the least latency", took)
	}
	if took > n*d {
		t.Errorf("%d round trips took %v: the latency was served %d times", n, took, n)
	}
	p.SetLatency(0)
	c.echo("y")
}
