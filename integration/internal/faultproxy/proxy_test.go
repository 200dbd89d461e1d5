package faultproxy

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestForwardsBothWaysAndHalfCloses(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(string) (*Proxy, error){"bytes": Start, "frames": StartZooKeeper} {
		p, err := start(serve(t, func(c net.Conn) {
			all, _ := io.ReadAll(c)
			_, _ = c.Write(all)
		}))
		p = started(t, p, err)
		c := dial(t, p)
		// As a length this is far beyond a frame's, so it stays raw.
		text := strings.Repeat("four-letter words are not frames", 1<<16)
		go func() {
			_, _ = io.WriteString(c, text)
			c.closeWrite()
		}()
		got, err := io.ReadAll(c)
		if err != nil || string(got) != text {
			t.Fatalf("%s: read %d bytes, %v; want %d", name, len(got), err, len(text))
		}
		eventually(t, "the connection is forgotten", func() bool { return p.Conns() == 0 })
	}
}

func TestUpstreamDownResetsTheClient(t *testing.T) {
	t.Parallel()
	p, down := start(t, echoServer(t)), start(t, echoServer(t))
	down.Cut()
	p.SetUpstream(down.Addr())
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	// The reset may overtake the return of Dial.
	if !errors.Is(err, reset) {
		t.Fatalf("got %v; want a reset", err)
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	// Not parallel: it looks at all goroutines.
	for name, fault := range map[string]func(*Proxy){
		"none":      func(*Proxy) {},
		"stall":     func(p *Proxy) { p.Stall(Both) },
		"blackhole": func(p *Proxy) { p.BlackHole(Both) },
		"cut":       func(p *Proxy) { p.Cut() },
		"half-open": func(p *Proxy) { p.HalfOpen() },
		"latency":   func(p *Proxy) { p.SetLatency(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, echoServer(t))
			old := dial(t, p)
			old.echo("x")
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
			heal(t, p)
			buf := make([]byte, 1<<20)
			stacks := string(buf[:runtime.Stack(buf, true)])
			for _, fn := range []string{"(*Proxy).accept", "(*conn).", "(*pipe)."} {
				if strings.Contains(stacks, "faultproxy."+fn) {
					t.Fatalf("%s runs after Close:\n%s", fn, stacks)
				}
			}
			refused(t, p)
		})
	}
}

func TestFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	_, p := startZK(t)
	session := func(patience time.Duration) (net.Conn, error) {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			return nil, err
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		writeFrame(c, make([]byte, 44))
		if _, err = readFrame(c); err != nil {
			c.Close()
		}
		return c, err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := session(5 * time.Millisecond)
				for xid := int32(1); err == nil; xid++ {
					writeFrame(c, request(xid, OpCreate, "/x"))
					if _, err = readFrame(c); err != nil {
						_ = c.Close()
					}
				}
			}
		}()
	}
	for range 5 {
		for _, fault := range []func(){
			p.Cut, p.Drop, p.HalfOpen, p.RefuseNew,
			func() { p.BlackHole(Both) }, func() { p.Stall(ToClient) },
			func() { p.SetLatency(time.Millisecond) }, func() { p.SetLatency(0) },
			func() { p.LoseReply(OpCreate, "/x") },
		} {
			fault()
			time.Sleep(2 * time.Millisecond)
			heal(t, p)
		}
	}
	close(stop)
	for range 4 {
		<-done
	}
	eventually(t, "a session through a healed proxy", func() bool {
		c, err := session(patience)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	eventually(t, "all connections are forgotten", func() bool { return p.Conns() == 0 })
}
