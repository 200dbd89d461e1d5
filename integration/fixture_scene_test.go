package integration_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// scene is where most tests of zklock begin: a client behind a proxy of its own, a key that nobody has used,
// and a connection without the library.
type scene struct {
	stage
	client *zklock.Client
	proxy  *faultproxy.Proxy
	expire func() // ends the client's session
	conn   *zk.Conn
	key    string
	parent string // the znode of the key's lock

	session int64 // in which the client sent what loseCreation has lost
}

// newScene connects a client. opts may be nil, for options.
func newScene(t *testing.T, on stage, opts *zklock.Options) *scene {
	t.Helper()
	s := &scene{stage: on, conn: on.plain(t), key: newKey(t)}
	s.parent = under(s.key)
	s.client, s.proxy, s.expire = on.proxied(t, opts)
	return s
}

// prepare creates the lock's znode, so that the first create below it is that of a lock node.
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

// waiting has another client hold the key and the scene's client wait for it. node is the waiter's.
func (s *scene) waiting(t *testing.T, opts ...holdfast.Option) (holder *holdfast.Lock, got <-chan outcome, node string) {
	t.Helper()
	holder = take(t, s.other(t), s.key)
	got = s.acquiring(limited(t), opts...)
	return holder, got, s.newest(t, 2)
}

// newest waits until the queue has n nodes, and returns the path of the last one.
func (s *scene) newest(t *testing.T, n int) string {
	t.Helper()
	names := inOrder(holds(t, s.conn, s.parent, n))
	return s.parent + "/" + names[n-1]
}

// inOrder sorts the names of a queue by their numbers.
func inOrder(names []string) []string {
	number := func(name string) string { return name[max(0, len(name)-10):] }
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	return names
}

// delete deletes a node as an operator would.
func (s *scene) delete(t *testing.T, path string) {
	t.Helper()
	must(t, s.conn.Delete(path, -1))
}

// reads waits until the client has had the replies to n reads of nodes: it has set its watches.
func (s *scene) reads(t *testing.T, n int) {
	t.Helper()
	eventually(t, "nodes are read", func() bool { return s.proxy.Count(faultproxy.ToClient, faultproxy.OpGetData) >= n })
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

// loseCreation has the client acquire the lock, and loses the first create of its node or the reply to it. The client
// cannot reconnect before reconnect is called: by then, all that it sent on the lost connection is over.
func (s *scene) loseCreation(ctx context.Context, t *testing.T, lose fault) (lost faultproxy.Frame, got <-chan outcome, reconnect func()) {
	t.Helper()
	s.prepare(t)
	loss := lose(s.proxy, faultproxy.OpCreate, s.parent)
	reconnecting, reconnect := s.proxy.HoldRequest(faultproxy.OpConnect, "")
	t.Cleanup(reconnect)
	s.session = s.client.Conn().SessionID()
	got = s.acquiring(ctx)
	lost = receive(t, "loss", loss)
	receive(t, "reconnection", reconnecting)
	return lost, got, reconnect
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

// A fault loses a frame.
type fault = func(*faultproxy.Proxy, faultproxy.Op, string) <-chan faultproxy.Frame

// Faults that strike a request, or its reply.
var (
	holdings = map[string]func(*faultproxy.Proxy, faultproxy.Op, string) (<-chan faultproxy.Frame, func()){
		"request": (*faultproxy.Proxy).HoldRequest, "reply": (*faultproxy.Proxy).HoldReply,
	}
	losses = map[string]fault{
		"request": (*faultproxy.Proxy).LoseRequest, "reply": (*faultproxy.Proxy).LoseReply,
	}
)
