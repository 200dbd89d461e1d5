package faultproxy

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// inMemory runs a test in a bubble, with a proxy that is [InMemory]. connect makes a connection with a session.
func inMemory(t *testing.T, test func(t *testing.T, z *fakeZK, p *Proxy, connect func() client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		z := &fakeZK{}
		p := InMemory(func(context.Context, string, string) (net.Conn, error) {
			end, ours := net.Pipe()
			go func() {
				defer ours.Close()
				z.handle(ours)
			}()
			return end, nil
		}, "zk:2181")
		t.Cleanup(func() { _ = p.Close() })
		test(t, z, p, func() client {
			conn, err := p.Dial(t.Context(), "tcp", "zk:2181")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return greeted(t, client{conn, t})
		})
	})
}

// TestOneFrame checks for each fault of one frame whether the server gets the request and what becomes of the connection.
func TestOneFrame(t *testing.T) {
	t.Parallel()
	filter := func(dir Direction, v Verdict) func(p *Proxy) {
		return func(p *Proxy) {
			p.SetFilter(func(f Frame) Verdict {
				if f.Dir == dir && f.Path == "/x/1" {
					return v
				}
				return Pass
			})
		}
	}
	for name, c := range map[string]struct {
		fault   func(p *Proxy)
		arrives int
		ends    bool
	}{
		"drop request":       {filter(ToServer, DropFrame), 0, false},
		"drop reply":         {filter(ToClient, DropFrame), 1, false},
		"cut before request": {filter(ToServer, CutBefore), 0, true},
		"cut before reply":   {filter(ToClient, CutBefore), 1, true},
		"lose request":       {func(p *Proxy) { p.LoseRequest(OpCreate, "/x") }, 0, true},
		"lose reply":         {func(p *Proxy) { p.LoseReply(OpCreate, "/x") }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, z *fakeZK, p *Proxy, connect func() client) {
				c.fault(p)
				client := connect()
				client.call(1, OpCreate, "/other")
				client.call(2, OpDelete, "/x/2")
				client.request(3, OpCreate, "/x/1")
				if c.ends {
					client.ends(io.EOF)
				} else {
					client.call(4, OpCreate, "/after")
				}
				z.saw(t, "/x/1", c.arrives)
			})
		})
	}
}

// TestRules: the first armed rule that matches takes a frame, once. A held frame holds up the frames behind it.
func TestRules(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, z *fakeZK, p *Proxy, connect func() client) {
		first, releaseFirst := p.HoldReply(OpCreate, "/a")
		second, releaseSecond := p.HoldReply(AnyOp, "")
		lose := p.LoseRequest(OpSetData, "")
		c1, c2 := connect(), connect()
		c1.call(-2, OpPing, "") // no AnyOp
		c1.request(1, OpCreate, "/a/1")
		acted(t, first, KindReply, 1)
		c2.request(1, OpCreate, "/a/2")
		acted(t, second, KindReply, 1)
		releaseSecond()
		c2.reply(1)
		c1.silent()
		releaseFirst()
		c1.reply(1)
		c1.request(2, OpSetData, "/q")
		c1.ends(io.EOF)
		acted(t, lose, KindRequest, 2)

		hit, release := p.HoldRequest(OpCreate, "/x")
		c2.request(2, OpCreate, "/x")
		go c2.request(3, OpGetData, "/y") // a pipe has no buffer
		acted(t, hit, KindRequest, 2)
		c2.silent()
		z.saw(t, "/x", 0)
		z.saw(t, "/y", 0)
		release()
		c2.reply(2)
		c2.reply(3)

		p.LoseRequest(OpCreate, "")
		p.Disarm()
		c2.call(4, OpCreate, "/x")
	})
}
