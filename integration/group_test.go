package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// flights is how many creations and deletions of a client are under way before further ones gather.
const flights = 4

// gathering is a client of which some creations are under way, since their replies are held, and others have gathered.
type gathering struct {
	*scene
	keys []string // the first ones are under way
	got  []<-chan outcome
	free func() // lets the replies pass

	giveUp context.CancelFunc
}

func gather(t *testing.T, s *scene, n int) *gathering {
	t.Helper()
	g := &gathering{scene: s}
	for range n {
		g.keys = append(g.keys, newKey(t))
		prepare(t, g.conn, g.keys[len(g.keys)-1])
	}
	hit, free := g.proxy.HoldReply(faultproxy.OpCreate, under(g.keys[0]))
	t.Cleanup(free)
	g.free = free
	ctx, giveUp := context.WithCancel(limited(t))
	t.Cleanup(giveUp)
	g.giveUp = giveUp
	g.start(ctx, g.keys[0])
	receive(t, "the first reply", hit)
	for _, key := range g.keys[1:flights] {
		g.start(ctx, key)
	}
	eventually(t, "some creations are under way", func() bool { return g.creations() == flights })
	for _, key := range g.keys[flights:] {
		g.start(ctx, key)
	}
	g.gathered(t, n)
	return g
}

// gathered waits until so many creations have begun. All that are not under way have gathered then.
func (g *gathering) gathered(t *testing.T, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d creations have begun", want), func() bool {
		sum := 0
		for _, group := range labelled(t.Name()) {
			if strings.Contains(group, "(*contender).create+") {
				n := 0
				_, _ = fmt.Sscan(group, &n)
				sum += n
			}
		}
		return sum == want
	})
}

func (g *gathering) start(ctx context.Context, key string) {
	g.got = append(g.got, acquiring(ctx, g.client, key))
	time.Sleep(2 * time.Millisecond) // so that they come in this order, nearly always
}

func (g *gathering) creations() int { return g.proxy.Count(faultproxy.ToServer, faultproxy.OpCreate) }

func (g *gathering) groups() int { return g.proxy.Count(faultproxy.ToServer, faultproxy.OpMulti) }

// finish checks that each key is granted, with the czxid of its only node as the token, and releases all.
func (g *gathering) finish(t *testing.T) {
	t.Helper()
	for i, got := range g.got {
		lock := granted(t, got)
		checkToken(t, g.conn, lock, g.node(t, g.keys[i]))
		release(t, lock)
	}
	g.residue(t)
}

// node is the path of the only node of a key.
func (g *gathering) node(t *testing.T, key string) string {
	t.Helper()
	return under(key) + "/" + holds(t, g.conn, under(key), 1)[0]
}

func (g *gathering) residue(t *testing.T) {
	t.Helper()
	for _, key := range g.keys {
		noResidue(t, g.conn, under(key))
	}
}

// TestGroup holds back creations of a client, which go out as few transactions afterwards (Z30), and lets something happen to them.
// Each member is granted its lock, or is in doubt, as it would be alone. Refused members are cases of G20 and of the simulation.
func TestGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, g *gathering){
		"sent": func(t *testing.T, g *gathering) {
			g.free()
			eventually(t, "all is asked for", func() bool { return g.proxy.Count(faultproxy.ToServer, faultproxy.OpGetChildren2) >= len(g.keys) })
			const heartbeats = 2 // look like transactions
			if c, m := g.creations(), g.groups(); c != flights || m == 0 || m > flights+heartbeats {
				t.Errorf("%d keys took %d creations and %d transactions", len(g.keys), c, m)
			}
			g.finish(t)
		},
		// Two creations of a key are never in one transaction: their grants would have the same token.
		"a key twice": func(t *testing.T, g *gathering) {
			last := len(g.keys) - 1
			g.start(limited(t), g.keys[last])
			one, other := g.got[last], g.got[last+1]
			g.keys, g.got = g.keys[:last], g.got[:last]
			g.free()
			var before holdfast.Token
			for range 2 {
				var o outcome
				select {
				case o = <-one:
				case o = <-other:
				case <-time.After(patience):
					verdict.Fatalf(t, "no grant")
				}
				must(t, o.err)
				if o.lock.Token() <= before {
					t.Errorf("token %d after %d", o.lock.Token(), before)
				}
				before = o.lock.Token()
				release(t, o.lock)
			}
			g.finish(t)
		},
		"the request is lost with the session": func(t *testing.T, g *gathering) { g.lostWithSession(t, losses["request"]) },
		"the reply is lost with the session":   func(t *testing.T, g *gathering) { g.lostWithSession(t, losses["reply"]) },
		// Gathered requests are not sent in another session.
		"given up while the connection is down": func(t *testing.T, g *gathering) {
			reconnecting, reconnect := g.proxy.HoldRequest(faultproxy.OpConnect, "")
			defer reconnect()
			g.proxy.Drop()
			g.free()
			receive(t, "reconnection", reconnecting)
			g.giveUp()
			for _, got := range g.got {
				if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
					t.Errorf("given up: %v", o.err)
				}
			}
			g.expire()
			g.proxy.ResetCounts()
			reconnect()
			release(t, g.take(t)) // in the next session
			if c, m := g.creations(), g.groups(); c > 2 || m > 0 {
				t.Errorf("the next session has %d creations and %d transactions", c, m)
			}
			g.residue(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) { test(t, gather(t, s, flights+12)) })
		})
	}
}

// lostWithSession loses the first transaction or its reply, and the session expires before the client can connect again.
func (g *gathering) lostWithSession(t *testing.T, lose fault) {
	t.Helper()
	lost := lose(g.proxy, faultproxy.OpMulti, zklock.DefaultRoot)
	reconnecting, reconnect := g.proxy.HoldRequest(faultproxy.OpConnect, "")
	defer reconnect()
	g.free()
	receive(t, "the loss", lost)
	receive(t, "reconnection", reconnecting)
	g.expire()
	reconnect()
	for i, got := range g.got { // those that had been granted before end with the session
		lock := granted(t, got)
		if i >= flights && lock.Err() == nil {
			checkToken(t, g.conn, lock, g.node(t, g.keys[i]))
		}
		_ = lock.Release(limited(t))
	}
	g.residue(t)
}
