package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// inMemory runs a test in a bubble, with a proxy that is [InMemory]. Connect makes a connection with a session.
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

// TestInMemory: what the proxy does to TCP it does in memory as well, and waits in virtual time.
func TestInMemory(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, z *fakeZK, p *Proxy, connect func() client) {
		c := connect()
		c.call(1, OpCreate, "/a")
		if n := p.Count(ToServer, OpCreate); n != 1 {
			t.Errorf("it counts %d requests", n)
		}

		hit := p.LoseReply(OpCreate, "/b")
		c.request(2, OpCreate, "/b")
		c.ends(io.EOF)
		acted(t, hit, KindReply, 2)
		z.saw(t, "/b", 1)

		c = connect()
		hit = p.LoseRequest(OpDelete, "/b")
		c.request(1, OpDelete, "/b")
		c.ends(io.EOF)
		acted(t, hit, KindRequest, 1)
		z.saw(t, "/b", 1)

		c = connect()
		p.SetLatency(time.Minute)
		began := time.Now()
		c.call(1, OpGetData, "/c")
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("there and back took %v, want two minutes", took)
		}
		p.SetLatency(0)

		p.BlackHole(Both)
		c.request(2, OpGetData, "/d")
		c.silent()
		z.saw(t, "/d", 0)

		p.Cut()
		c.ends(io.EOF)
		if _, err := p.Dial(t.Context(), "tcp", ""); !errors.Is(err, errRefused) {
			t.Errorf("Dial: %v, want that it is refused", err)
		}
		heal(t, p)
		connect().call(1, OpGetData, "/e")
	})
}
