package faultproxy

import (
	"net"
	"testing"
	"time"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	// judging returns a proxy that gives v on the request (or the reply) for /x.
	judging := func(t *testing.T, dir Direction, v Verdict) (*Proxy, *fakeZK, zkClient) {
		z := newFakeZK(t)
		p := startZK(t, z.addr)
		p.SetFilter(func(f Frame) Verdict {
			if f.Dir == dir && f.Path == "/x" {
				return v
			}
			return Pass
		})
		return p, z, dialZK(t, p)
	}
	saw := func(t *testing.T, z *fakeZK, want int) {
		t.Helper()
		if n := z.saw("/x"); n != want {
			t.Errorf("the server saw /x %d times, want %d", n, want)
		}
	}
	t.Run("drop request", func(t *testing.T) {
		t.Parallel()
		_, z, c := judging(t, ToServer, DropFrame)
		c.send(1, OpCreate, "/x")
		c.call(2, OpCreate, "/y")
		saw(t, z, 0)
	})
	t.Run("drop reply", func(t *testing.T) {
		t.Parallel()
		_, z, c := judging(t, ToClient, DropFrame)
		c.send(1, OpCreate, "/x")
		c.call(2, OpCreate, "/y")
		saw(t, z, 1)
	})
	t.Run("cut before request", func(t *testing.T) {
		t.Parallel()
		_, z, c := judging(t, ToServer, CutBefore)
		c.send(1, OpCreate, "/x")
		expectEOF(t, c)
		saw(t, z, 0)
	})
	t.Run("cut after request", func(t *testing.T) {
		t.Parallel()
		_, z, c := judging(t, ToServer, CutAfter)
		c.send(1, OpCreate, "/x")
		eventually(t, "the server sees the request", func() bool { return z.saw("/x") == 1 })
		eventually(t, "the connection ends", func() bool {
			_ = c.SetReadDeadline(time.Now().Add(patience))
			_, err := readFrame(c)
			return err != nil
		})
	})
	t.Run("cut after reply", func(t *testing.T) {
		t.Parallel()
		p, _, c := judging(t, ToClient, CutAfter)
		p.SetLatency(5 * time.Millisecond)
		c.send(1, OpCreate, "/w")
		c.send(2, OpCreate, "/x")
		c.expectReply(1)
		c.expectReply(2)
		expectEOF(t, c)
	})
	t.Run("hold", func(t *testing.T) {
		t.Parallel()
		p, z, c := judging(t, ToServer, Hold)
		other := dialZK(t, p)
		c.send(1, OpCreate, "/x")
		c.send(2, OpCreate, "/y")
		expectSilence(t, c)
		other.call(1, OpCreate, "/z")
		saw(t, z, 0)
		p.Release()
		c.expectReply(1)
		c.expectReply(2)
		c.send(3, OpCreate, "/x")
		expectSilence(t, c)
		p.Drop()
		expectReset(t, c)
	})
}

func TestBlockingFilter(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	entered, release := make(chan struct{}, 2), make(chan struct{})
	p.SetFilter(func(f Frame) Verdict {
		if f.Path == "/x" && f.Dir == ToServer {
			entered <- struct{}{}
			select {
			case <-release:
			case <-f.Gone:
			}
		}
		return Pass
	})
	c, other := dialZK(t, p), dialZK(t, p)
	c.send(1, OpCreate, "/x")
	<-entered
	other.call(1, OpCreate, "/y")
	close(release)
	c.expectReply(1)

	p.SetFilter(func(f Frame) Verdict {
		if f.Path == "/x" && f.Dir == ToServer {
			entered <- struct{}{}
			<-f.Gone
		}
		return Pass
	})
	other.send(2, OpCreate, "/x")
	<-entered
	_ = p.Close()
}

func TestLoseReply(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{0, 3 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			t.Parallel()
			z := newFakeZK(t)
			p := startZK(t, z.addr)
			p.SetLatency(latency)
			c := dialZK(t, p)
			hit := p.LoseReply(OpCreate, "/lock/")
			c.call(1, OpCreate, "/other")
			c.call(2, OpDelete, "/lock/a")
			expectNoHit(t, hit)

			c.send(3, OpGetData, "/before")
			c.send(4, OpCreate, "/lock/b")
			c.expectReply(3)
			expectEOF(t, c)
			f := expectHit(t, hit)
			if f.Kind != KindReply || f.Xid != 4 || f.Op != OpCreate || f.Path != "/lock/b" || f.Zxid != 4 {
				t.Errorf("lost %v", f)
			}
			if n := z.saw("/lock/b"); n != 1 {
				t.Errorf("the server saw the request %d times, want 1", n)
			}
			dialZK(t, p).call(1, OpCreate, "/lock/b") // the rule acts once
		})
	}
}

func TestLoseRequest(t *testing.T) {
	t.Parallel()
	z := newFakeZK(t)
	p := startZK(t, z.addr)
	c := dialZK(t, p)
	hit := p.LoseRequest(OpDelete, "/lock")
	c.send(1, OpCreate, "/lock/a")
	c.send(2, OpDelete, "/lock/a")
	if f := expectHit(t, hit); f.Kind != KindRequest || f.Xid != 2 {
		t.Errorf("lost %v", f)
	}
	eventually(t, "the earlier request arrives", func() bool { return z.saw("/lock/a") == 1 })
	dialZK(t, p).call(1, OpDelete, "/lock/a")
	if n := z.saw("/lock/a"); n != 2 {
		t.Errorf("the server saw %d requests, want 2", n)
	}
}

func TestLoseConnectAndPing(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	hit := p.LoseReply(OpConnect, "")
	c := dial(t, p)
	writeFrame(c, make([]byte, 44))
	expectEOF(t, c)
	if f := expectHit(t, hit); f.Kind != KindConnect {
		t.Errorf("lost %v", f)
	}
	z := dialZK(t, p)
	hit = p.LoseReply(OpPing, "")
	z.send(-2, OpPing, "")
	expectEOF(t, z)
	expectHit(t, hit)
}

// The first armed rule that matches a request takes it.
func TestRulesActInTheOrderArmed(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	first, release1 := p.HoldReply(OpCreate, "/a")
	second, release2 := p.HoldReply(AnyOp, "")
	lose := p.LoseRequest(OpSetData, "")
	c1, c2 := dialZK(t, p), dialZK(t, p)
	c1.call(-2, OpPing, "") // no AnyOp
	c1.send(1, OpCreate, "/a/1")
	expectHit(t, first)
	c2.send(1, OpCreate, "/a/2")
	expectHit(t, second)
	expectNoHit(t, lose)
	release2()
	c2.expectReply(1)
	expectSilence(t, c1)
	release1()
	c1.expectReply(1)
	c1.send(2, OpSetData, "/q")
	expectEOF(t, c1)
	expectHit(t, lose)
}

func TestHoldRequest(t *testing.T) {
	t.Parallel()
	z := newFakeZK(t)
	p := startZK(t, z.addr)
	c := dialZK(t, p)
	hit, release := p.HoldRequest(OpCreate, "/x")
	c.send(1, OpCreate, "/x")
	c.send(2, OpGetData, "/y")
	expectHit(t, hit)
	expectSilence(t, c)
	if z.saw("/x") != 0 || z.saw("/y") != 0 {
		t.Error("a held request reached the server")
	}
	release()
	release()
	c.expectReply(1)
	c.expectReply(2)

	_, release = p.HoldRequest(OpCreate, "/x")
	release()
	c.call(3, OpCreate, "/x")

	hit, _ = p.HoldRequest(OpCreate, "/x")
	c.send(4, OpCreate, "/x")
	expectHit(t, hit)
	_ = p.Close() // ends an unreleased hold
}

// A rule whose request is lost with its connection has not acted yet.
func TestRuleSurvivesTheConnection(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	hit := p.LoseReply(OpCreate, "")
	c := dialZK(t, p)
	p.Stall(ToServer)
	c.send(1, OpCreate, "/x")
	eventually(t, "the request is read", func() bool { return p.Count(ToServer, OpCreate) == 1 })
	p.Drop()
	eventually(t, "the connection is forgotten", func() bool { return p.Conns() == 0 })
	heal(t, p)
	c = dialZK(t, p)
	c.send(1, OpCreate, "/x")
	expectEOF(t, c)
	if f := expectHit(t, hit); f.Conn != 2 {
		t.Errorf("lost %v", f)
	}
}

// Rules and filters can be set on a raw proxy, for connections yet to come.
func TestRuleTurnsParsingOn(t *testing.T) {
	t.Parallel()
	p := start(t, newFakeZK(t).addr)
	raw := zkClient{dial(t, p), t}
	writeFrame(raw, make([]byte, 44))
	if _, err := readFrame(raw); err != nil {
		t.Fatal(err)
	}
	hit := p.LoseReply(OpCreate, "")
	raw.call(1, OpCreate, "/x")
	expectNoHit(t, hit)
	c := dialZK(t, p)
	c.send(1, OpCreate, "/x")
	expectEOF(t, c)
	expectHit(t, hit)
}

func TestFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	p := startZK(t, newFakeZK(t).addr)
	stop := make(chan struct{})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", p.Addr())
				if err != nil {
					continue
				}
				_ = c.SetDeadline(time.Now().Add(5 * time.Millisecond))
				writeFrame(c, make([]byte, 44))
				for xid := int32(1); err == nil; xid++ {
					if _, err = readFrame(c); err == nil {
						writeFrame(c, request(xid, OpCreate, "/x"))
					}
				}
				_ = c.Close()
			}
		}()
	}
	for range 5 {
		for _, fault := range []func(){
			p.Cut, p.Drop, p.HalfOpen, p.RefuseNew, p.Release,
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
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		writeFrame(c, make([]byte, 44))
		_, err = readFrame(c)
		return err == nil
	})
	eventually(t, "all connections are forgotten", func() bool { return p.Conns() == 0 })
}
