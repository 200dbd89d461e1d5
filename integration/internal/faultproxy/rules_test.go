package faultproxy

import (
	"io"
	"testing"
	"time"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dir     Direction
		verdict Verdict
		arrives int
	}{
		"drop request":       {ToServer, DropFrame, 0},
		"drop reply":         {ToClient, DropFrame, 1},
		"cut before request": {ToServer, CutBefore, 0},
		"cut before reply":   {ToClient, CutBefore, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z, p := startZK(t)
			p.SetFilter(func(f Frame) Verdict {
				if f.Dir == tt.dir && f.Path == "/x" {
					return tt.verdict
				}
				return Pass
			})
			c := dialZK(t, p)
			c.request(1, OpCreate, "/x")
			if tt.verdict == DropFrame {
				c.call(2, OpCreate, "/y")
			} else {
				c.ends(io.EOF)
			}
			z.saw(t, "/x", tt.arrives)
		})
	}
}

// A filter that blocks holds up one direction of one connection, and ends with it.
func TestBlockingFilter(t *testing.T) {
	t.Parallel()
	_, p := startZK(t)
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
	c.request(1, OpCreate, "/x")
	<-entered
	other.call(1, OpCreate, "/y")
	release <- struct{}{}
	c.reply(1)

	other.request(2, OpCreate, "/x")
	<-entered
	_ = p.Close()
}

func TestLoseReply(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{0, 3 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			t.Parallel()
			z, p := startZK(t)
			p.SetLatency(latency)
			c := dialZK(t, p)
			hit := p.LoseReply(OpCreate, "/lock/")
			c.call(1, OpCreate, "/other")
			c.call(2, OpDelete, "/lock/a")
			notActed(t, hit)

			c.request(3, OpGetData, "/before")
			c.request(4, OpCreate, "/lock/b")
			c.reply(3)
			c.ends(io.EOF)
			acted(t, hit, KindReply, 4)
			z.saw(t, "/lock/b", 1)
			dialZK(t, p).call(1, OpCreate, "/lock/b") // the rule acts once
		})
	}
}

func TestLoseRequest(t *testing.T) {
	t.Parallel()
	z, p := startZK(t)
	c := dialZK(t, p)
	hit := p.LoseRequest(OpDelete, "/lock")
	c.call(1, OpCreate, "/lock/a")
	c.request(2, OpDelete, "/lock/a")
	acted(t, hit, KindRequest, 2)
	z.saw(t, "/lock/a", 1)
	dialZK(t, p).call(1, OpDelete, "/lock/a")
	z.saw(t, "/lock/a", 2)
}

func TestLoseConnectAndPing(t *testing.T) {
	t.Parallel()
	_, p := startZK(t)
	hit := p.LoseReply(OpConnect, "")
	c := dial(t, p)
	writeFrame(c, make([]byte, 44))
	c.ends(io.EOF)
	acted(t, hit, KindConnect, 0)
	c = dialZK(t, p)
	hit = p.LoseReply(OpPing, "")
	c.request(-2, OpPing, "")
	c.ends(io.EOF)
	acted(t, hit, KindPing, -2)
}

// The first armed rule that matches a request takes it.
func TestRulesActInTheOrderArmed(t *testing.T) {
	t.Parallel()
	_, p := startZK(t)
	first, release1 := p.HoldReply(OpCreate, "/a")
	second, release2 := p.HoldReply(AnyOp, "")
	lose := p.LoseRequest(OpSetData, "")
	c1, c2 := dialZK(t, p), dialZK(t, p)
	c1.call(-2, OpPing, "") // no AnyOp
	c1.request(1, OpCreate, "/a/1")
	acted(t, first, KindReply, 1)
	c2.request(1, OpCreate, "/a/2")
	acted(t, second, KindReply, 1)
	notActed(t, lose)
	release2()
	c2.reply(1)
	c1.silent()
	release1()
	c1.reply(1)
	c1.request(2, OpSetData, "/q")
	c1.ends(io.EOF)
	acted(t, lose, KindRequest, 2)
}

func TestHoldRequest(t *testing.T) {
	t.Parallel()
	z, p := startZK(t)
	c := dialZK(t, p)
	hit, release := p.HoldRequest(OpCreate, "/x")
	c.request(1, OpCreate, "/x")
	c.request(2, OpGetData, "/y")
	acted(t, hit, KindRequest, 1)
	c.silent()
	z.saw(t, "/x", 0)
	z.saw(t, "/y", 0)
	release()
	release()
	c.reply(1)
	c.reply(2)

	_, release = p.HoldRequest(OpCreate, "/x")
	release()
	c.call(3, OpCreate, "/x")

	hit, _ = p.HoldRequest(OpCreate, "/x")
	c.request(4, OpCreate, "/x")
	acted(t, hit, KindRequest, 4)
	_ = p.Close() // ends an unreleased hold
}

// A rule whose request is lost with its connection has not acted yet.
func TestRuleSurvivesTheConnection(t *testing.T) {
	t.Parallel()
	_, p := startZK(t)
	hit := p.LoseReply(OpCreate, "")
	c := dialZK(t, p)
	p.Stall(ToServer)
	c.request(1, OpCreate, "/x")
	eventually(t, "the request is read", func() bool { return p.Count(ToServer, OpCreate) == 1 })
	p.Drop()
	eventually(t, "the connection is forgotten", func() bool { return p.Conns() == 0 })
	heal(t, p)
	c = dialZK(t, p)
	c.request(2, OpCreate, "/x")
	c.ends(io.EOF)
	acted(t, hit, KindReply, 2)
}

// A rule that was disarmed does not act.
func TestDisarm(t *testing.T) {
	t.Parallel()
	_, p := startZK(t)
	p.LoseRequest(OpCreate, "")
	p.Disarm()
	dialZK(t, p).call(1, OpCreate, "/x")
}
