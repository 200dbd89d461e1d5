package integration_test

import (
	"crypto/rand"
	"net/url"
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
const conformanceSession = 3 * time.Second

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
				return &zkHarness{target: target, addr: addr, names: names, root: "/conformance-" + rand.Text()[:10]}
			},
			Lanes:      conformanceLanes,
			Lease:      first.SessionTimeout(),
			Soon:       20 * time.Second,
			Ordered:    true,
			Heartbeats: locktest.PerSession,
		}, string(target.Source())
	}
}

// zkHarness is a namespace on a ZooKeeper server. Each client has a proxy of
// its own, and a clock that can be stopped and set.
type zkHarness struct {
	target *zkserver.Target
	addr   string
	root   string
	names  zklock.Names

	once  sync.Once
	plain *zk.Conn
}

func (h *zkHarness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	t.Helper()
	p, err := faultproxy.StartZooKeeper(h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	secret := &credentials{}
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		secret.see(f)
		return faultproxy.Pass
	})
	fake := &clock.Fake{}
	c, err := zklock.Dial(clock.With(t.Context(), fake), []string{p.Addr()}, &zklock.Options{
		Root:           h.root,
		SessionTimeout: conformanceSession,
		Names:          h.names,
		Owner:          o.Owner,
		Hooks:          o.Hooks,
	})
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
		Locker: c.Locker,
		Cut:    func() { cut.Store(true); p.BlackHole(faultproxy.Both) },
		Heal:   func() { cut.Store(false); heal() },
		// A stopped process neither runs timers nor reads and writes.
		Pause:  func() { fake.Pause(); p.BlackHole(faultproxy.Both) },
		Resume: func() { heal(); fake.Resume() },
		Jump:   fake.Jump,
	}
	if h.target.Source() != zkserver.Given { // whose operator may have switched off what that takes
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

// Residue lists the lock nodes of a key, through a session of its own.
func (h *zkHarness) Residue(t testing.TB, key string) []string {
	t.Helper()
	h.once.Do(func() { h.plain = plain(t, h.addr) })
	locks, _, err := h.plain.Children(h.root)
	if err != nil && err != zk.ErrNoNode {
		t.Fatal(err)
	}
	var left []string
	for _, lock := range locks {
		if name, err := url.PathUnescape(lock); err != nil || name != key {
			continue
		}
		nodes, _, err := h.plain.Children(h.root + "/" + lock)
		if err != nil && err != zk.ErrNoNode {
			t.Fatal(err)
		}
		left = append(left, nodes...)
	}
	return left
}
