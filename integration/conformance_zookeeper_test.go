package integration_test

import (
	"crypto/rand"
	"encoding/binary"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// conformanceSession is the session timeout that the clients of the suite ask for. A server given by its address may clamp it.
const conformanceSession = 6 * time.Second

// zookeeperEngine is a server given by its address, in a container, or a local process. All forms of names share it.
func zookeeperEngine(server func() *zkserver.Target, names zklock.Names) func(*testing.T) (locktest.Engine, string) {
	return func(t *testing.T) (locktest.Engine, string) {
		target := server()
		addr := target.Addrs()[0]
		first := dial(t, addr, &zklock.Options{SessionTimeout: conformanceSession})
		return locktest.Engine{
			Start: func(t testing.TB) locktest.Harness {
				return &zkHarness{
					addr: addr, inspected: addr, names: names, root: "/conformance-" + rand.Text()[:10],
					expires: target.Source() != zkserver.Given, // the operator may have disabled the command
				}
			},
			Lanes:      conformanceLanes,
			Lease:      first.SessionTimeout(),
			Soon:       20 * time.Second,
			Heartbeats: locktest.PerSession,
			Unknown:    []string{"Since", "Lease", "LastHeard"},
		}, string(target.Source()) + versionOf(t, addr)
	}
}

// versionOf is the version that a server reports, for the results; it is empty if the server reports none.
func versionOf(t *testing.T, addr string) string {
	version, err := zkserver.Version(limited(t), addr)
	if err != nil {
		return ""
	}
	return ", ZooKeeper " + version
}

// zkHarness is a namespace on a ZooKeeper server. Each client has its own proxy, and a clock that can be stopped and set.
type zkHarness struct {
	addr  string // of the clients
	root  string
	names zklock.Names
	dress func(*zklock.Options) // further options, or nil
	// inspected is the address at which Residue looks, without TLS.
	inspected string
	// expires says that the server lists its sessions; not every server does.
	expires bool

	once  sync.Once
	plain *zk.Conn
}

// options are the options of a client.
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
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	secret, unwatched := &credentials{}, &unreadNodes{paths: make(map[string]struct{})}
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		secret.see(f)
		unwatched.see(f)
		return faultproxy.Pass
	})
	fake := &drivertest.Clock{}
	opts := h.options()
	opts.Owner, opts.OnEvent = o.Owner, o.OnEvent
	c, err := zklock.Dial(clock.With(t.Context(), fake), []string{p.Addr()}, opts)
	must(t, err)
	heal := func() { check(t, p.Heal()) }
	var cut atomic.Bool
	client := &locktest.Client{
		API:   c.Client,
		Cut:   func() { cut.Store(true); p.BlackHole(faultproxy.Both) },
		Stall: func() { cut.Store(true); p.Stall(faultproxy.Both) },
		Heal:  func() { cut.Store(false); heal() },
		// A stopped process runs no timers, reads nothing and writes nothing.
		Pause:  func() { fake.Pause(); p.BlackHole(faultproxy.Both) },
		Resume: func() { heal(); fake.Resume() },
		Jump:   fake.Jump,
		Watches: func() {
			t.Helper()
			if opts.TLS != nil { // the proxy cannot read TLS
				eventually(t, "own nodes are watched", func() bool { return h.watched(t, c.Conn().SessionID()) })
			}
			eventually(t, "own nodes are watched", unwatched.none)
		},
	}
	if opts.TLS == nil {
		client.Lose = p.Lose
	}
	if h.expires && opts.TLS == nil {
		// The client must not regain its session in between: it would see its node deleted
		// in a live session, and that is no expiry.
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
	must(t, err)
	watches, err := zkserver.Watches(limited(t), h.inspected)
	must(t, err)
	for _, node := range dump.Ephemerals[session] {
		if !slices.Contains(watches[node], session) {
			return false
		}
	}
	return true
}

// unreadNodes are the nodes that a client has created or written to, and not yet read or
// deleted since. It reads its own nodes with a watch.
type unreadNodes struct {
	mu    sync.Mutex
	paths map[string]struct{}
}

// see belongs to a filter: call it for every frame.
func (u *unreadNodes) see(f faultproxy.Frame) {
	if f.Dir != faultproxy.ToClient || f.Kind != faultproxy.KindReply {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case f.Op == faultproxy.OpCreate && f.Err == 0:
		if path := createdPath(f); isSequential(path) { // and no parent
			u.paths[path] = struct{}{}
		}
	case f.Op == faultproxy.OpSetData && f.Err == 0: // it has spent the watch, if there was one
		u.paths[f.Path] = struct{}{}
	case f.Op == faultproxy.OpGetData, f.Op == faultproxy.OpDelete:
		delete(u.paths, f.Path)
	}
}

func isSequential(path string) bool {
	return len(path) > 10 && strings.Trim(path[len(path)-10:], "0123456789") == ""
}

func (u *unreadNodes) none() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.paths) == 0
}

// Residue lists the lock nodes of a key, through its own session.
func (h *zkHarness) Residue(t testing.TB, key string) []string {
	t.Helper()
	opts := h.options()
	h.once.Do(func() {
		h.plain = plain(t, h.inspected)
		for _, auth := range opts.Auth {
			must(t, h.plain.AddAuth(auth.Scheme, []byte(auth.Credentials)))
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

// createdPath is the path in the reply to a create.
func createdPath(f faultproxy.Frame) string {
	n := int(binary.BigEndian.Uint32(f.Payload[16:]))
	return string(f.Payload[20 : 20+n])
}
