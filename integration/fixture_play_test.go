package integration_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"runtime/pprof"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// playOn is "server" if all scenes are to be played on a real ZooKeeper, as "make test-long" does, and "fake" if none is, as
// "make score" does.
const playOn = "HOLDFAST_SCENES"

// play runs a test on a scene: in virtual time, with a fake for a server that does what ZooKeeper does
// (TestZooKeeperDifferential). So nothing depends on the machine's speed.
func play(t *testing.T, opts *zklock.Options, test func(t *testing.T, s *scene)) {
	t.Helper()
	if os.Getenv(playOn) == "server" {
		playOnServer(t, opts, test)
		return
	}
	t.Parallel()
	verdict.BeginVirtual(t)
	synctest.Test(t, func(t *testing.T) {
		labelGoroutines(t)
		t.Cleanup(func() { noGoroutines(t) })
		test(t, newScene(t, newFake(t), opts))
	})
}

// playOnBoth is play on the fake and on the shared server: for one test of each class of faults.
func playOnBoth(t *testing.T, opts *zklock.Options, test func(t *testing.T, s *scene)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) { play(t, opts, test) })
	t.Run("server", func(t *testing.T) { playOnServer(t, opts, test) })
}

// playOnServer is play on the shared server, in real time.
func playOnServer(t *testing.T, opts *zklock.Options, test func(t *testing.T, s *scene)) {
	t.Helper()
	if os.Getenv(playOn) == "fake" {
		return
	}
	start(t)
	test(t, newScene(t, real{}, opts))
}

// stage is what a scene is played on: a server.
type stage interface {
	// dial connects a client.
	dial(t *testing.T, opts *zklock.Options) *zklock.Client
	// proxied connects a client through a proxy of its own. expire ends its session.
	proxied(t *testing.T, opts *zklock.Options) (client *zklock.Client, p *faultproxy.Proxy, expire func())
	// plain returns a connection without the library.
	plain(t *testing.T) *zk.Conn
	// watches has the sessions that watch a znode, or one below it, by the znode.
	watches(t *testing.T, path string) map[string][]int64
}

// real is the shared server.
type real struct{}

func (real) dial(t *testing.T, opts *zklock.Options) *zklock.Client {
	t.Helper()
	return dial(t, server(t).Addr(), opts)
}

func (real) proxied(t *testing.T, opts *zklock.Options) (*zklock.Client, *faultproxy.Proxy, func()) {
	t.Helper()
	return expirable(t, opts)
}

func (real) plain(t *testing.T) *zk.Conn {
	t.Helper()
	return plain(t, server(t).Addr())
}

func (real) watches(t *testing.T, path string) map[string][]int64 {
	t.Helper()
	return watchesAt(t, server(t).Addr(), path)
}

// fake is a server in virtual time.
type fake struct{ *zkfake.Ensemble }

func newFake(t *testing.T) fake {
	t.Helper()
	e := zkfake.New(zkfake.Config{
		Tick: tick, Max: longest, Containers: time.Hour,
		Latency: func() time.Duration { return 50*time.Microsecond + rand.N(500*time.Microsecond) },
	})
	t.Cleanup(e.Close)
	return fake{e}
}

func (f fake) dial(t *testing.T, opts *zklock.Options) *zklock.Client {
	t.Helper()
	return dialBy(t, f.Link().Dial, opts, f.Addrs()...)
}

// dialBy connects a client in virtual time.
func dialBy(t *testing.T, d network.Dialer, opts *zklock.Options, servers ...string) *zklock.Client {
	t.Helper()
	if opts == nil {
		opts = options()
	}
	calm := *opts
	calm.SessionTimeout = cmp.Or(opts.SessionTimeout, options().SessionTimeout)
	client, err := zklock.Dial(network.With(limited(t), d), servers, &calm)
	must(t, err)
	t.Cleanup(func() { finish(t, client) })
	return client
}

func (f fake) proxied(t *testing.T, opts *zklock.Options) (*zklock.Client, *faultproxy.Proxy, func()) {
	t.Helper()
	p := faultproxy.InMemory(f.Link().Dial, f.Addrs()[0])
	t.Cleanup(func() { _ = p.Close() })
	client := dialBy(t, p.Dial, opts, p.Addr())
	return client, p, func() {
		t.Helper()
		p.BlackHole(faultproxy.Both) // or the client would hear of what ends with its session
		f.Expire(client.Conn().SessionID())
		check(t, p.Heal()) // so that the client reconnects
	}
}

func (f fake) plain(t *testing.T) *zk.Conn {
	t.Helper()
	link := f.Link()
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return link.Dial(ctx, network, address)
	}
	return connected(t, f.Addrs(), dial)
}

func (f fake) watches(_ *testing.T, path string) map[string][]int64 { return f.Watches(path) }

// labelGoroutines has the goroutines of a test carry its name: a goroutine inherits the labels of the one that starts it.
func labelGoroutines(t *testing.T) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("test", t.Name())))
}
