package integration_test

import (
	"crypto/rand"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// conformanceSession is what the clients of the suite ask for. A server that
// was given by its address may clamp it.
const conformanceSession = 6 * time.Second

// zookeeperEngine is one that was given by its address, or in a container, or a
// local process.
func zookeeperEngine(names zklock.Names) func(*testing.T) (locktest.Engine, string) {
	return func(t *testing.T) (locktest.Engine, string) {
		target := zkserver.Find(t, zkserver.Config{MaxSessionTimeout: 30 * time.Second})
		t.Logf("server: %s at %v", target.Source(), target.Addrs())
		addr := target.Addrs()[0]
		first := dial(t, addr, &zklock.Options{SessionTimeout: conformanceSession})
		return locktest.Engine{
			Start: func(t testing.TB) locktest.Harness {
				return &zkHarness{
					addr: addr, inspected: addr, names: names, root: "/conformance-" + rand.Text()[:10],
					expires: target.Source() != zkserver.Given, // whose operator may have switched off what that takes
				}
			},
			Lanes:      conformanceLanes,
			Lease:      first.SessionTimeout(),
			Soon:       20 * time.Second,
			Ordered:    true,
			Heartbeats: locktest.PerSession,
		}, string(target.Source()) + versionOf(t, addr)
	}
}

// versionOf is what a server says of itself, for the results; nothing if it does
// not, as a server of somebody else's need not.
func versionOf(t *testing.T, addr string) string {
	version, err := zkserver.Version(limited(t), addr)
	if err != nil {
		return ""
	}
	return ", ZooKeeper " + version
}

// zkHarness is a namespace on a ZooKeeper server. Each client has a proxy of
// its own, and a clock that can be stopped and set.
type zkHarness struct {
	addr  string // of the clients
	root  string
	names zklock.Names
	dress func(*zklock.Options) // what else they ask for, or nil
	// inspected is where residue is looked for, without TLS.
	inspected string
	// expires says that the server tells of its sessions, which it need not.
	expires bool

	once  sync.Once
	plain *zk.Conn
}

// options are those of a client.
func (h *zkHarness) options() *zklock.Options {
	opts := &zklock.Options{Root: h.root, SessionTimeout: conformanceSession, Names: h.names}
	if h.dress != nil {
		h.dress(opts)
	}
	return opts
}

func (h *zkHarness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	t.Helper()
	p, err := faultproxy.StartZooKeeper(h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	secret, unwatched := &credentials{}, &unreadNodes{paths: make(map[string]struct{})}
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		secret.see(f)
		unwatched.see(f)
		return faultproxy.Pass
	})
	fake := &clock.Fake{}
	opts := h.options()
	opts.Owner, opts.Hooks = o.Owner, o.Hooks
	c, err := zklock.Dial(clock.With(t.Context(), fake), []string{p.Addr()}, opts)
	if err != nil {
		t.Fatal(err)
	}
	heal := func() {
		if err := p.Heal(); err != nil {
			t.Error(err)
		}
	}
	var cut atomic.Bool
	client := &locktest.Client{
		API:  c.Client,
		Cut:  func() { cut.Store(true); p.BlackHole(faultproxy.Both) },
		Heal: func() { cut.Store(false); heal() },
		// A stopped process neither runs timers nor reads and writes.
		Pause:  func() { fake.Pause(); p.BlackHole(faultproxy.Both) },
		Resume: func() { heal(); fake.Resume() },
		Jump:   fake.Jump,
		Watches: func() {
			t.Helper()
			if opts.TLS != nil { // which lets nobody read along
				eventually(t, "own nodes are watched", func() bool { return h.watched(t, c.Conn().SessionID()) })
			}
			eventually(t, "own nodes are watched", unwatched.none)
		},
	}
	if h.expires && opts.TLS == nil {
		// The client must not get its session back in between: it would see its
		// node deleted in a session that lives, which is not what expiry is.
		client.Expire = func() {
			p.BlackHole(faultproxy.Both)
			secret.expire(t, h.addr)
			if !cut.Load() {
				heal()
			}
		}
	}
	return client
}

// watched reports whether a session watches all its nodes.
func (h *zkHarness) watched(t testing.TB, session int64) bool {
	t.Helper()
	dump, err := zkserver.Dump(limited(t), h.inspected)
	if err != nil {
		t.Fatal(err)
	}
	watches, err := zkserver.Watches(limited(t), h.inspected)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range dump.Ephemerals[session] {
		if !slices.Contains(watches[node], session) {
			return false
		}
	}
	return true
}

// unreadNodes are the nodes that a client has created, and has not read or deleted
// since. It reads its own with a watch.
type unreadNodes struct {
	mu    sync.Mutex
	paths map[string]struct{}
}

// see is a filter's part: it is to be called for every frame.
func (u *unreadNodes) see(f faultproxy.Frame) {
	if f.Dir != faultproxy.ToClient || f.Kind != faultproxy.KindReply {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case f.Op == faultproxy.OpCreate && f.Err == 0:
		u.paths[createdPath(f)] = struct{}{}
	case f.Op == faultproxy.OpGetData, f.Op == faultproxy.OpDelete:
		delete(u.paths, f.Path)
	}
}

func (u *unreadNodes) none() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.paths) == 0
}

// Residue lists the lock nodes of a key, through a session of its own.
func (h *zkHarness) Residue(t testing.TB, key string) []string {
	t.Helper()
	opts := h.options()
	h.once.Do(func() {
		h.plain = plain(t, h.inspected)
		for _, auth := range opts.Auth {
			if err := h.plain.AddAuth(auth.Scheme, []byte(auth.Credentials)); err != nil {
				t.Fatal(err)
			}
		}
	})
	locks, _, err := h.plain.Children(opts.Root)
	if err != nil && err != zk.ErrNoNode {
		t.Fatal(err)
	}
	var left []string
	for _, lock := range locks {
		if name, err := url.PathUnescape(lock); err != nil || name != key {
			continue
		}
		nodes, _, err := h.plain.Children(opts.Root + "/" + lock)
		if err != nil && err != zk.ErrNoNode {
			t.Fatal(err)
		}
		left = append(left, nodes...)
	}
	return left
}
