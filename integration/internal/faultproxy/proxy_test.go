package faultproxy

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds the wait for what must happen, generously for a loaded
// machine.
const patience = 20 * time.Second

// pause is how long a test watches for what must not happen.
const pause = 60 * time.Millisecond

// echoServer returns the address of a server that echoes, and closes when its
// client does.
func echoServer(t testing.TB) string {
	t.Helper()
	return serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
}

// serve runs handle for each connection to the returned address; the connection
// is closed when handle returns.
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

func start(t *testing.T, upstream string) *Proxy {
	t.Helper()
	p, err := Start(upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	return dialAddr(t, p.Addr())
}

func dialAddr(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

func send(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatalf("write %q: %v", s, err)
	}
}

func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != want {
		t.Fatalf("read %q, %v; want %q", buf, err, want)
	}
}

// expectSilence fails if something arrives, or the connection ends.
func expectSilence(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(pause))
	var b [1]byte
	n, err := c.Read(b[:])
	var timeout net.Error
	if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("read %d bytes, %v; want silence on an open connection", n, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
}

func expectReset(t *testing.T, c net.Conn) {
	t.Helper()
	var b [1]byte
	if n, err := c.Read(b[:]); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read %d bytes, %v; want a reset", n, err)
	}
}

func expectEOF(t *testing.T, c net.Conn) {
	t.Helper()
	var b [1]byte
	if n, err := c.Read(b[:]); err != io.EOF {
		t.Fatalf("read %d bytes, %v; want EOF", n, err)
	}
}

func expectRefused(t *testing.T, p *Proxy) {
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

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestForwardsBothWaysAndHalfCloses(t *testing.T) {
	t.Parallel()
	for _, parse := range []bool{false, true} {
		p := start(t, serve(t, func(c net.Conn) {
			all, _ := io.ReadAll(c)
			_, _ = c.Write(all)
		}))
		if parse {
			p.ParseFrames()
		}
		c := dial(t, p)
		// As a length this is far beyond a frame's, so it stays raw.
		text := strings.Repeat("four-letter words are not frames", 1<<16)
		go func() {
			_, _ = io.WriteString(c, text)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		got, err := io.ReadAll(c)
		if err != nil || string(got) != text {
			t.Fatalf("parse %v: read %d bytes, %v; want %d", parse, len(got), err, len(text))
		}
		eventually(t, "the connection is forgotten", func() bool { return p.Conns() == 0 })
	}
}

func TestUpstreamDownResetsTheClient(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	down := start(t, echoServer(t))
	down.Cut()
	p.SetUpstream(down.Addr())
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	// The reset may overtake the return of Dial.
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("got %v; want a reset", err)
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	// Not parallel: it counts goroutines.
	faults := map[string]func(*Proxy){
		"none":      func(*Proxy) {},
		"stall":     func(p *Proxy) { p.Stall(Both) },
		"blackhole": func(p *Proxy) { p.BlackHole(Both) },
		"cut":       func(p *Proxy) { p.Cut() },
		"half-open": func(p *Proxy) { p.HalfOpen() },
		"latency":   func(p *Proxy) { p.SetLatency(time.Hour) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			p, err := Start(echoServer(t))
			if err != nil {
				t.Fatal(err)
			}
			old := dial(t, p)
			send(t, old, "x")
			expect(t, old, "x")
			fault(p)
			_, _ = io.WriteString(old, "y")
			if c, err := net.Dial("tcp", p.Addr()); err == nil {
				_, _ = io.WriteString(c, "z")
				defer c.Close()
			}
			time.Sleep(pause / 10)
			for range 2 {
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Heal(); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 1<<20)
			stacks := string(buf[:runtime.Stack(buf, true)])
			for _, fn := range []string{"(*Proxy).accept", "(*conn).", "(*pipe)."} {
				if strings.Contains(stacks, "faultproxy."+fn) {
					t.Fatalf("%s runs after Close:\n%s", fn, stacks)
				}
			}
			expectRefused(t, p)
		})
	}
}
