package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
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
}

// playGathering runs a test on one, with n keys whose parents exist.
func playGathering(t *testing.T, opts *zklock.Options, n int, test func(t *testing.T, g *gathering)) {
	t.Helper()
	play(t, opts, func(t *testing.T, s *scene) { test(t, gather(t, s, n)) })
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
	g.start(t, limited(t), g.keys[0])
	receive(t, "the first reply", hit)
	for _, key := range g.keys[1:flights] {
		g.start(t, limited(t), key)
	}
	eventually(t, "some creations are under way", func() bool { return g.creations() == flights })
	for _, key := range g.keys[flights:] {
		g.start(t, limited(t), key)
	}
	g.gathered(t, n-flights)
	return g
}

// gathered waits until so many creations have gathered: their calls wait, and no flight is theirs.
func (g *gathering) gathered(t *testing.T, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d creations have gathered", want), func() bool {
		sum := 0
		for _, group := range labelled(t.Name()) {
			n := 0
			_, _ = fmt.Sscan(group, &n)
			switch {
			case strings.Contains(group, "(*contender).create+"):
				sum += n
			case strings.Contains(group, "(*batches).do+"):
				sum -= n
			}
		}
		return sum == want
	})
}

func (g *gathering) start(t *testing.T, ctx context.Context, key string) <-chan outcome {
	t.Helper()
	got := acquiring(ctx, g.client, key)
	g.got = append(g.got, got)
	time.Sleep(2 * time.Millisecond) // so that they come in this order, nearly always
	return got
}

func (g *gathering) creations() int { return g.proxy.Count(faultproxy.ToServer, faultproxy.OpCreate) }

func (g *gathering) groups() int { return g.proxy.Count(faultproxy.ToServer, faultproxy.OpMulti) }

// finish checks that each key is granted, with the czxid of its only node as the token, and releases all.
func (g *gathering) finish(t *testing.T) (locks []*holdfast.Lock) {
	t.Helper()
	for i, got := range g.got {
		lock := granted(t, got)
		checkToken(t, g.conn, lock, g.node(t, g.keys[i]))
		release(t, lock)
		locks = append(locks, lock)
	}
	g.residue(t)
	return locks
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

// Z30. What gathers goes out as one transaction.
func TestGroup(t *testing.T) {
	playGathering(t, nil, flights+12, func(t *testing.T, g *gathering) {
		g.free()
		eventually(t, "all is asked for", func() bool { return g.lists() >= len(g.keys) })
		const heartbeats = 2 // look like transactions
		if c, m := g.creations(), g.groups(); c != flights || m == 0 || m > flights+heartbeats {
			t.Errorf("%d keys took %d creations and %d transactions", len(g.keys), c, m)
		}
		g.finish(t)
	})
}

// Z30. Two grants of a key never come of one transaction: they would have the same token.
func TestGroupOfOneKey(t *testing.T) {
	playGathering(t, nil, flights+3, func(t *testing.T, g *gathering) {
		key := g.keys[flights+1]
		again := g.start(t, limited(t), key)
		g.free()
		g.got = g.got[:len(g.keys)]
		first, second := g.got[flights+1], again
		var one, other outcome
		select {
		case one = <-first:
			release(t, one.lock)
			other.lock = granted(t, second)
		case one = <-second:
			release(t, one.lock)
			other.lock = granted(t, first)
		case <-time.After(patience):
			verdict.Fatalf(t, "no grant")
		}
		if one.lock.Token() >= other.lock.Token() {
			t.Errorf("token %d after %d", other.lock.Token(), one.lock.Token())
		}
		release(t, other.lock)
		g.keys = append(g.keys[:flights+1], g.keys[flights+2:]...)
		g.got = append(g.got[:flights+1], g.got[flights+2:]...)
		g.finish(t)
	})
}

// Z30. When the server refuses a transaction, only the member that is to blame bears that.
func TestGroupRefused(t *testing.T) {
	t.Parallel()
	t.Run("parent missing", func(t *testing.T) {
		playGathering(t, nil, flights+8, func(t *testing.T, g *gathering) {
			must(t, g.conn.Delete(under(g.keys[flights+3]), -1))
			g.free()
			g.finish(t)
		})
	})
	t.Run("denied", func(t *testing.T) {
		playGathering(t, nil, flights+8, func(t *testing.T, g *gathering) {
			const bad = flights + 3
			_, err := g.conn.SetACL(under(g.keys[bad]), zk.WorldACL(zk.PermRead|zk.PermDelete|zk.PermAdmin), -1)
			must(t, err)
			g.free()
			if o := receive(t, "Acquire returns", g.got[bad]); !errors.Is(o.err, holdfast.ErrDenied) {
				t.Errorf("denied: %v", o.err)
			}
			g.got = append(g.got[:bad], g.got[bad+1:]...)
			g.keys = append(g.keys[:bad], g.keys[bad+1:]...)
			g.finish(t)
		})
	})
	t.Run("a deletion of what is gone", func(t *testing.T) {
		playGathering(t, nil, flights+8, func(t *testing.T, g *gathering) {
			g.free()
			var locks []*holdfast.Lock
			for _, got := range g.got {
				locks = append(locks, granted(t, got))
			}
			g.quiet(t)
			hit, free := g.proxy.HoldReply(faultproxy.OpDelete, under(g.keys[0]))
			defer free()
			var released []<-chan error
			for i, lock := range locks {
				released = append(released, async(func() error { return lock.Release(limited(t)) }))
				if i == 0 {
					receive(t, "the first reply", hit)
				}
				time.Sleep(2 * time.Millisecond)
			}
			const bad = flights + 3
			g.delete(t, g.node(t, g.keys[bad]))
			free()
			for i, got := range released {
				err := receive(t, "Release returns", got)
				if lost := errors.Is(err, holdfast.ErrLost); lost != (i == bad) || (err != nil && !lost) {
					t.Errorf("release of number %d: %v", i, err)
				}
			}
			g.residue(t)
		})
	})
}

// Z30. When the transaction or its reply is lost, each member is in the same doubt as it would be alone.
func TestGroupLost(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		for _, expire := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, session expires %v", name, expire), func(t *testing.T) {
				playGathering(t, nil, flights+8, func(t *testing.T, g *gathering) {
					lost := lose(g.proxy, faultproxy.OpMulti, zklock.DefaultRoot)
					var reconnecting <-chan faultproxy.Frame
					reconnect := func() {}
					if expire {
						reconnecting, reconnect = g.proxy.HoldRequest(faultproxy.OpConnect, "")
						defer reconnect()
					}
					g.free()
					transaction := receive(t, "the loss", lost)
					if !expire {
						kept := 0
						for _, lock := range g.finish(t) {
							if int64(lock.Token()) == transaction.Zxid {
								kept++
							}
						}
						if name == "reply" && kept < 2 {
							t.Errorf("%d nodes that the transaction created are kept", kept)
						}
						return
					}
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
				})
			})
		}
	}
}

// Z30. Who gives up while its creation has gathered gets its answer at once. Nothing is created.
func TestGroupGivenUp(t *testing.T) {
	playGathering(t, nil, flights+4, func(t *testing.T, g *gathering) {
		key := newKey(t)
		prepare(t, g.conn, key)
		ctx, giveUp := context.WithCancel(t.Context())
		got := acquiring(ctx, g.client, key)
		time.Sleep(5 * time.Millisecond)
		giveUp()
		if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
			t.Errorf("given up: %v", o.err)
		}
		g.free()
		g.finish(t)
		_, stat, err := g.conn.Get(under(key))
		must(t, err)
		if stat.Cversion != 0 {
			t.Errorf("its parent has seen %d changes", stat.Cversion)
		}
	})
}

// Z30. What has gathered is not handed over while the connection is down, to be carried out whenever there is another.
func TestGroupWhileDown(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		g := &gathering{scene: s}
		for range flights + 20 {
			g.keys = append(g.keys, newKey(t))
			prepare(t, g.conn, g.keys[len(g.keys)-1])
		}
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		hit, free := g.proxy.HoldReply(faultproxy.OpCreate, under(g.keys[0]))
		defer free()
		for i, key := range g.keys {
			g.start(t, ctx, key)
			if i == 0 {
				receive(t, "the first reply", hit)
			}
		}
		reconnecting, reconnect := g.proxy.HoldRequest(faultproxy.OpConnect, "")
		defer reconnect()
		g.proxy.Drop()
		free()
		receive(t, "reconnection", reconnecting)
		giveUp()
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
	})
}

// Z30. A server takes transactions that are larger than its buffer for an attack, and hangs up.
func TestGroupFitsTheBuffer(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: longest, Props: map[string]string{"jute.maxbuffer": "49152"}})
	conn, p := plain(t, s.Addr()), proxy(t, s.Addr())
	p.SetLatency(5 * time.Millisecond)
	client := dial(t, p.Addr(), &zklock.Options{SessionTimeout: longest})
	var known []string
	for range 150 {
		known = append(known, newKey(t))
		prepare(t, conn, known[len(known)-1])
	}
	var got []<-chan outcome
	for _, key := range known {
		got = append(got, acquiring(limited(t), client, key, holdfast.WithData(make([]byte, 900))))
	}
	for _, g := range got {
		release(t, granted(t, g))
	}
	if n := p.CountKind(faultproxy.ToServer, faultproxy.KindConnect); n > 1 {
		t.Errorf("%d connections were lost", n-1)
	}
}

// Z30. Waiters for one key do not go through the flights one by one: no two of them can be in a transaction.
func TestGroupHotKey(t *testing.T) {
	play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
		s.prepare(t)
		hit, free := s.proxy.HoldReply(faultproxy.OpCreate, s.parent)
		defer free()
		const waiters = 60
		ctx, giveUp := context.WithCancel(t.Context())
		var got []<-chan outcome
		for range waiters {
			got = append(got, s.acquiring(ctx))
		}
		receive(t, "the first reply", hit)
		holds(t, s.conn, s.parent, waiters-1) // although no reply has arrived; one waits for that
		giveUp()
		free()
		for _, g := range got {
			if o := receive(t, "Acquire returns", g); o.err == nil {
				release(t, o.lock)
			}
		}
		s.clean(t)
	})
}

// Z30. Close does not wait for what has gathered, and leaves nothing of it.
func TestGroupClosed(t *testing.T) {
	playGathering(t, nil, flights+20, func(t *testing.T, g *gathering) {
		closed := async(func() error { return g.client.Close(limited(t)) })
		for _, got := range g.got {
			if o := receive(t, "Acquire returns", got); !errors.Is(o.err, holdfast.ErrClosed) {
				t.Errorf("while the client closes: %v, %v", o.lock, o.err)
			}
		}
		g.free()
		must(t, receive(t, "Close returns", closed))
		g.residue(t)
	})
}
