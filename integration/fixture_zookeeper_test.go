package integration_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// The helpers of the tests on ZooKeeper. Each fails the test if it does not succeed.

var keys atomic.Int64

// newKey returns a key that no other test uses, a plain one without a slash.
func newKey(t *testing.T) string {
	return fmt.Sprintf("%s.%d.%d", strings.NewReplacer("/", ".", " ", "_").Replace(t.Name()), os.Getpid(), keys.Add(1))
}

// under returns the znode of the lock of a plain key.
func under(key string) string { return zklock.DefaultRoot + "/" + key }

// options returns the options of a client whose session survives a slow moment of the machine.
func options() *zklock.Options { return &zklock.Options{SessionTimeout: 20 * time.Second} }

// dial connects a client, which is closed when the test ends. opts may be nil, for options, and need not have a session timeout.
func dial(t testing.TB, addr string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	if opts == nil {
		opts = options()
	}
	calm := *opts
	calm.SessionTimeout = cmp.Or(opts.SessionTimeout, options().SessionTimeout)
	return dialServers(t, calm, addr)
}

// finish closes a client in any state, without waiting for long.
func finish(t testing.TB, client interface{ Close(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	receive(t, "Close returns", async(func() error { return client.Close(ctx) }))
}

// dialServers is dial with any number of servers.
func dialServers(t testing.TB, opts zklock.Options, servers ...string) *zklock.Client {
	t.Helper()
	client, err := zklock.Dial(limited(t), servers, &opts)
	if err != nil {
		must(t, fmt.Errorf("dial %v: %w", servers, err))
	}
	t.Cleanup(func() { finish(t, client) })
	return client
}

// acquirer is a client of any engine.
type acquirer interface {
	Acquire(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error)
}

// take acquires a free key.
func take(t testing.TB, client acquirer, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := client.Acquire(limited(t), key, opts...)
	must(t, err)
	return lock
}

// nodeOf is the path of a lock's own node.
func nodeOf(t *testing.T, client *zklock.Client, lock *holdfast.Lock) string {
	t.Helper()
	guard, err := client.Guard(lock)
	must(t, err)
	return guard.Path
}

// proxy returns a proxy to an address, which is closed when the test ends.
func proxy(t testing.TB, addr string) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.StartZooKeeper(addr)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// proxied connects a client through a proxy of its own to the shared server.
func proxied(t *testing.T, opts *zklock.Options) (*zklock.Client, *faultproxy.Proxy) {
	t.Helper()
	p := proxy(t, server(t).Addr())
	return dial(t, p.Addr(), opts), p
}

// plain returns a connection without the library; it is closed when the test ends.
func plain(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	return connected(t, []string{addr}, net.DialTimeout)
}

// connected is plain by another dialer.
func connected(t testing.TB, servers []string, dialer zk.Dialer) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(servers, options().SessionTimeout, zk.WithLogInfo(false), zk.WithLogger(noLog{}), zk.WithDialer(dialer))
	must(t, err)
	t.Cleanup(conn.Close)
	for deadline := time.After(patience); ; {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-deadline:
			verdict.Fatalf(t, "never: plain session")
		}
	}
}

type noLog struct{}

func (noLog) Printf(string, ...any) {}

// list returns the children of a znode in order; none if it does not exist.
func list(t testing.TB, conn *zk.Conn, path string) []string {
	t.Helper()
	names, _, err := conn.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatalf("list %s: %v", path, err)
	}
	slices.Sort(names)
	return names
}

// holds fails the test if a znode never has exactly n children.
func holds(t testing.TB, conn *zk.Conn, path string, n int) []string {
	t.Helper()
	var names []string
	if !becomes(func() bool { names = list(t, conn, path); return len(names) == n }) {
		if len(names) < n { // a session may have ended
			verdict.Fatalf(t, "%s has children %q, want %d of them", path, names, n)
		}
		t.Fatalf("%s has children %q, want %d of them", path, names, n)
	}
	return names
}

// noResidue fails the test if any node stays below a lock's znode.
func noResidue(t testing.TB, conn *zk.Conn, path string) {
	t.Helper()
	holds(t, conn, path, 0)
}

// watchesAt has the sessions that watch a server's znode, or one below it, by the znode.
func watchesAt(t testing.TB, addr, path string) map[string][]int64 {
	t.Helper()
	all, err := zkserver.Watches(limited(t), addr)
	must(t, err)
	maps.DeleteFunc(all, func(watched string, _ []int64) bool { return watched != path && !strings.HasPrefix(watched, path+"/") })
	return all
}

// noWatches fails the test if watches on a znode or below it stay in the server.
func noWatches(t testing.TB, addr, path string) {
	t.Helper()
	unwatched(t, func() map[string][]int64 { return watchesAt(t, addr, path) })
}

// unwatched is noWatches by a list of the watches.
func unwatched(t testing.TB, watches func() map[string][]int64) {
	t.Helper()
	var left map[string][]int64
	if !becomes(func() bool { left = watches(); return len(left) == 0 }) {
		t.Errorf("watches left in the server: %v", left)
	}
}

// forms are the forms of names.
var forms = map[string]zklock.Names{
	"curator": zklock.CuratorNames, "kazoo": zklock.KazooNames, "curator-latch": zklock.CuratorLatchNames, "curator-rw": zklock.CuratorRWNames,
}

// prepare creates the znode of a key's lock, so that the next create below it is of a lock node.
func prepare(t *testing.T, conn *zk.Conn, key string) string {
	t.Helper()
	for _, p := range []string{zklock.DefaultRoot, under(key)} {
		if _, err := conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	return under(key)
}

// outcome is the result of an Acquire.
type outcome struct {
	lock *holdfast.Lock
	err  error
}

// acquiring calls Acquire in the background.
func acquiring(ctx context.Context, client acquirer, key string, opts ...holdfast.Option) <-chan outcome {
	return async(func() outcome {
		lock, err := client.Acquire(ctx, key, opts...)
		return outcome{lock, err}
	})
}

// granted waits for a grant.
func granted(t *testing.T, got <-chan outcome) *holdfast.Lock {
	t.Helper()
	o := receive(t, "Acquire returns", got)
	must(t, o.err)
	return o.lock
}

// release releases a lock, and fails the test without a confirmation.
func release(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	must(t, lock.Release(limited(t)))
}
