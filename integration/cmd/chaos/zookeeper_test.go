package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// echo is an echo server.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// answers reports whether a new connection over a wire gets an answer in time.
func answers(w *zooKeeperWire, within time.Duration) bool {
	conn, err := net.DialTimeout("tcp4", w.proxy.Addr(), within)
	if err != nil {
		return false
	}
	defer conn.Close()
	return pings(conn, within)
}

// pings reports whether a connection gets an answer in time. Its message is not a ZooKeeper frame, so the proxy forwards it
// unchanged.
func pings(conn net.Conn, within time.Duration) bool {
	_ = conn.SetDeadline(time.Now().Add(within))
	question, answer := []byte("ruok"), make([]byte, 4)
	if _, err := conn.Write(question); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, answer)
	return err == nil && bytes.Equal(question, answer)
}

// quiet is how long a fault that lets nothing through must keep silence, and loud how long to wait for an answer.
const (
	quiet = 100 * time.Millisecond
	loud  = 30 * time.Second
)

// TestZooKeeperNetwork guards that the faults of a slot's network work, on all wires or on the one in use, and that the end
// of one leaves another in force.
func TestZooKeeperNetwork(t *testing.T) {
	for _, kind := range []nemesis.Kind{
		nemesis.Cut, nemesis.BlackHole, nemesis.OneWayIn, nemesis.OneWayOut, nemesis.Stall, nemesis.HalfOpen,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			slot, err := newZooKeeperSlot(0, []string{echo(t), echo(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(slot.close)
			inUse, other := slot.wires[1], slot.wires[0]
			conn, err := net.Dial("tcp4", inUse.proxy.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if !pings(conn, loud) {
				t.Fatal("no answer before the fault")
			}

			for _, all := range []bool{false, true} {
				f := nemesis.Fault{Kind: kind}
				if all {
					f.Pick, f.Server = 1, 1
				}
				// What the last round opened has to be gone, or the other wire is in use too.
				for began := time.Now(); other.proxy.Conns() > 0 && time.Since(began) < loud; {
					time.Sleep(time.Millisecond)
				}
				target, end, err := slot.strike(f)
				if err != nil || target == "" {
					t.Fatalf("%q, %v", target, err)
				}
				if answers(inUse, quiet) {
					t.Errorf("%s: there is an answer", target)
				}
				if !all && pings(conn, quiet) {
					t.Errorf("%s: there is an answer on the connection that was there before", target)
				}
				onlyOne := !all || kind == nemesis.HalfOpen
				if onlyOne != answers(other, map[bool]time.Duration{true: loud, false: quiet}[onlyOne]) {
					t.Errorf("%s: an answer over the other wire: %v", target, !onlyOne)
				}
				endOther := afflict([]*zooKeeperWire{inUse}, blackHole(faultproxy.Both))
				if err := end(t.Context()); err != nil {
					t.Fatal(err)
				}
				if answers(inUse, quiet) {
					t.Errorf("%s: its end has ended another fault", target)
				}
				if err := endOther(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, w := range slot.wires {
					if !answers(w, loud) {
						t.Errorf("%s: no answer when all was over", target)
					}
				}
			}
		})
	}
}

// TestCompareListings guards how a run judges znodes that are left behind: a node that most servers have is our fault; one
// that a single server shows is the server's.
func TestCompareListings(t *testing.T) {
	for name, c := range map[string]struct {
		shown          [][]string
		left, diverged []string // of diverged, how the lines begin
	}{
		"nothing":         {[][]string{nil, nil, nil}, nil, nil},
		"no listing":      {nil, nil, nil},
		"on all":          {[][]string{{"a", "b"}, {"b", "a"}, {"a", "b"}}, []string{"a", "b"}, nil},
		"on two":          {[][]string{nil, {"a"}, {"a"}}, []string{"a"}, nil},
		"on one":          {[][]string{nil, {"a"}, nil}, nil, []string{"server 1 shows 1 znode that the others lack (ZOOKEEPER-5010): a"}},
		"several on one":  {[][]string{nil, nil, {"a", "b"}}, nil, []string{"server 2 shows 2 znodes that the others lack (ZOOKEEPER-5010): a, b"}},
		"each its own":    {[][]string{{"a"}, {"b"}, nil}, nil, []string{"server 0 shows 1 znode that", "server 1 shows 1 znode that"}},
		"both":            {[][]string{{"a", "b"}, {"b"}, {"b"}}, []string{"b"}, []string{"server 0 shows 1 znode that the others lack (ZOOKEEPER-5010): a"}},
		"one server only": {[][]string{{"a"}}, []string{"a"}, nil},
	} {
		left, diverged := compareListings(c.shown)
		if !slices.Equal(left, c.left) || !slices.EqualFunc(diverged, c.diverged, strings.HasPrefix) {
			t.Errorf("%s: left %q, diverged %q; want %q, %q", name, left, diverged, c.left, c.diverged)
		}
	}
}

// TestZooKeeperResidue guards that residue asks every server: it finds a node of a live session, and separates it from a node
// that only one server shows.
func TestZooKeeperResidue(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ensemble := zkserver.NewEnsemble(t, zkserver.Config{TickTime: zooKeeperTick, Controlled: true})
	st := &ensembleStage{ensemble: ensemble}
	conn, _, err := zk.Connect(ensemble.Addrs(), 10*zooKeeperLease, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	for _, path := range []string{zooKeeperRoot, zooKeeperRoot + "/a"} {
		if _, err := conn.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if left, diverged, err := st.residue(ctx, nil); len(left)+len(diverged) > 0 || err != nil {
		t.Errorf("of nothing: left %q, diverged %q, %v", left, diverged, err)
	}
	node, ghost := zooKeeperRoot+"/a/node", zooKeeperRoot+"/a/ghost"
	if _, err := conn.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	_, followers, err := ensemble.Roles(ctx)
	if err != nil {
		t.Fatal(err)
	}
	server := followers[0] // it has the parent, since residue has listed its children
	if err := ensemble.Plant(server, ghost, nil); err != nil {
		t.Fatal(err)
	}
	left, diverged, err := st.residue(ctx, nil)
	want := fmt.Sprintf("server %d shows 1 znode that the others lack (ZOOKEEPER-5010): %s", server, ghost)
	if err != nil || !slices.Equal(left, []string{node}) || !slices.Equal(diverged, []string{want}) {
		t.Errorf("left %q, diverged %q, %v; want %q and %q", left, diverged, err, node, want)
	}
}
