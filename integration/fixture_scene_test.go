package integration_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/jute"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// scene is the start of most tests of zklock: a client behind a proxy of its own, a new key, and a connection without the library.
type scene struct {
	stage
	client *zklock.Client
	proxy  *faultproxy.Proxy
	expire func() // ends the client's session
	conn   *zk.Conn
	key    string
	parent string // the znode of the key's lock
}

// newScene connects a client. opts may be nil, for options.
func newScene(t *testing.T, on stage, opts *zklock.Options) *scene {
	t.Helper()
	s := &scene{stage: on, conn: on.plain(t), key: newKey(t)}
	s.parent = under(s.key)
	s.client, s.proxy, s.expire = on.proxied(t, opts)
	return s
}

// prepare creates the lock's znode, so that the next create below it is of a lock node.
func (s *scene) prepare(t *testing.T) { prepare(t, s.conn, s.key) }

// other is another client of the same server.
func (s *scene) other(t *testing.T) *zklock.Client { return s.dial(t, nil) }

func (s *scene) take(t *testing.T, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	return take(t, s.client, s.key, opts...)
}

func (s *scene) acquiring(ctx context.Context, opts ...holdfast.Option) <-chan outcome {
	return acquiring(ctx, s.client, s.key, opts...)
}

// delete deletes a node as an operator would.
func (s *scene) delete(t *testing.T, path string) {
	t.Helper()
	must(t, s.conn.Delete(path, -1))
}

// reconnects drops the client's connection and waits until its session is back on another one.
func (s *scene) reconnects(t *testing.T) {
	t.Helper()
	events := s.client.Events()
	defer events.Close()
	receive(t, "the state to begin with", events.Ready())
	s.proxy.Drop()
	receive(t, "Ready", events.Ready())
}

// quiet waits until the client has had the replies to all that it has asked.
func (s *scene) quiet(t *testing.T) {
	t.Helper()
	eventually(t, "all is answered", func() bool {
		_, err := s.client.Conn().Sync("/")
		must(t, err)
		asked := s.proxy.CountKind(faultproxy.ToServer, faultproxy.KindRequest)
		return s.proxy.CountKind(faultproxy.ToClient, faultproxy.KindReply) >= asked // one may have been under way at a reset
	})
}

// noWatches fails the test if watches on a znode or below it stay.
func (s *scene) noWatches(t *testing.T, path string) {
	t.Helper()
	unwatched(t, func() map[string][]int64 { return s.watches(t, path) })
}

// clean fails the test if the queue does not become empty or keeps a watch.
func (s *scene) clean(t *testing.T) {
	t.Helper()
	noResidue(t, s.conn, s.parent)
	s.noWatches(t, s.parent)
}

// Faults that strike a request, or its reply.
var (
	holdings = map[string]func(*faultproxy.Proxy, faultproxy.Op, string) (<-chan faultproxy.Frame, func()){
		"request": (*faultproxy.Proxy).HoldRequest, "reply": (*faultproxy.Proxy).HoldReply,
	}
	losses = map[string]func(*faultproxy.Proxy, faultproxy.Op, string) <-chan faultproxy.Frame{
		"request": (*faultproxy.Proxy).LoseRequest, "reply": (*faultproxy.Proxy).LoseReply,
	}
)

// playOn is "server" to play all scenes on a real ZooKeeper, as "make test-long" does, and "fake" to play none there, as
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

// stage is the server of a scene.
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
	addr := server(t).Addr()
	p := proxy(t, addr)
	var c credentials
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		c.see(f)
		return faultproxy.Pass
	})
	return dial(t, p.Addr(), opts), p, func() {
		t.Helper()
		p.RefuseNew() // or the client would regain its session in between
		c.expire(t, addr)
		p.Drop() // so that the client reconnects
		check(t, p.Heal())
	}
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
		p.BlackHole(faultproxy.Both) // or the client would get the events of the nodes that end with its session
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

// labelGoroutines labels the goroutines of a test with its name: a goroutine inherits the labels of its creator.
func labelGoroutines(t *testing.T) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("test", t.Name())))
}

// credentials records the session and its password from the connections that a proxy makes from now on. A test needs both to end
// the session from outside. It belongs to a filter: call see for every frame.
type credentials struct {
	mu       sync.Mutex
	session  int64
	password []byte
}

func (c *credentials) see(f faultproxy.Frame) {
	if f.Kind != faultproxy.KindConnect || f.Dir != faultproxy.ToClient || len(f.Payload) < 20 {
		return
	}
	id := int64(binary.BigEndian.Uint64(f.Payload[8:]))
	n := int(binary.BigEndian.Uint32(f.Payload[16:]))
	if id == 0 || len(f.Payload) < 20+n {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.password = id, bytes.Clone(f.Payload[20:20+n])
}

// expire ends the session in the server at once, as its expiry would.
func (c *credentials) expire(t testing.TB, addr string) {
	t.Helper()
	c.mu.Lock()
	session, password := c.session, c.password
	c.mu.Unlock()
	if session == 0 {
		t.Fatal("no session was seen")
	}
	eventually(t, "the server has ended the session", func() bool {
		// It may fail: the server hangs up if the session's client resumes it at the same time.
		server := &rawServer{t: t, name: addr, dial: func() (net.Conn, error) { return net.Dial("tcp", addr) }}
		raw := &rawSession{server: server, id: session, password: password}
		raw.connect()
		raw.call(rawClose, func(*jute.Encoder) {})
		_ = raw.conn.Close()
		sessions, err := zkserver.Dump(limited(t), addr)
		return err == nil && len(sessions.Ephemerals[session]) == 0 && !slices.Contains(sessions.Live, session)
	})
}
