package integration_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/signaltest"
	"github.com/holdfast-go/holdfast/zklock"
)

// patience is how long anything may take that has to happen: only a failure
// waits so long.
const patience = 30 * time.Second

// tick is that of the shared server. Sessions last from two ticks to longest.
const (
	tick    = 100 * time.Millisecond
	longest = 60 * time.Second
)

// shared is the server that tests use which do no harm to it. It is started for
// the first that asks.
var shared struct {
	once   sync.Once
	server *zkserver.Server
	err    error
}

// children are what this binary does when it is started as a child process, by
// the value of childVariable.
var children = map[string]func() int{}

const childVariable = "HOLDFAST_TEST_CHILD"

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv(childVariable)]; ok {
		os.Exit(child())
	}
	signaltest.Default()
	code := dynamoserver.Main(m)
	if shared.server != nil {
		shared.server.Close()
	}
	os.Exit(code)
}

// server returns the shared server.
func server(t *testing.T) *zkserver.Server {
	t.Helper()
	shared.once.Do(func() {
		shared.server, shared.err = zkserver.Start(context.Background(), zkserver.Config{
			TickTime:               tick,
			MaxSessionTimeout:      longest,
			ContainerCheckInterval: time.Minute,
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// start makes a test run beside others and look, at its end, whether all of
// its goroutines have ended. Call it first.
func start(t *testing.T) {
	t.Helper()
	t.Parallel()
	// Goroutines inherit the labels of the one that starts them.
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("test", t.Name())))
	t.Cleanup(func() { noGoroutines(t) })
}

// noGoroutines fails the test if goroutines of the library, or of go-zookeeper,
// that stem from it do not end.
func noGoroutines(t *testing.T) {
	t.Helper()
	var left string
	if !becomes(func() bool { left = goroutines(t.Name()); return left == "" }) {
		t.Errorf("goroutines left behind:\n%s", left)
	}
}

// goroutines returns those of the library and of go-zookeeper that stem from a
// test.
func goroutines(test string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	label := fmt.Sprintf("%q:%q", "test", test)
	var found []string
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		ours := strings.Contains(group, "github.com/go-zookeeper/zk.") ||
			strings.Contains(group, "github.com/holdfast-go/holdfast.") ||
			strings.Contains(group, "github.com/holdfast-go/holdfast/dynamolock.") ||
			strings.Contains(group, "github.com/holdfast-go/holdfast/zklock.")
		if ours && strings.Contains(group, label) {
			found = append(found, group)
		}
	}
	return strings.Join(found, "\n\n")
}

// limited returns a context for calls that ought to succeed.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// becomes waits until cond holds, and reports whether it ever did.
func becomes(cond func() bool) bool {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// eventually fails the test if cond never holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !becomes(cond) {
		t.Fatalf("never: %s", what)
	}
}

// receive returns what comes from a channel, and fails the test if nothing does.
func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}

// silent fails the test if something comes from a channel that ought not to,
// for a while: this can only ever miss a fault, never invent one.
func silent[T any](t *testing.T, what string, from <-chan T) {
	t.Helper()
	select {
	case <-from:
		t.Fatalf("too early: %s", what)
	case <-time.After(50 * time.Millisecond):
	}
}

var keys atomic.Int64

// newKey returns a key that no other test uses, a plain one without a slash.
func newKey(t *testing.T) string {
	return fmt.Sprintf("%s.%d.%d", strings.NewReplacer("/", ".", " ", "_").Replace(t.Name()), os.Getpid(), keys.Add(1))
}

// under returns the znode of a plain key's lock.
func under(key string) string { return zklock.DefaultRoot + "/" + key }

// options returns the options of a client whose session outlives a slow moment
// of the machine.
func options() *zklock.Options { return &zklock.Options{SessionTimeout: 10 * time.Second} }

// dial connects a client, which is closed when the test ends. opts may be nil,
// for options.
func dial(t testing.TB, addr string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	if opts == nil {
		opts = options()
	}
	client, err := zklock.Dial(limited(t), []string{addr}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { finish(t, client) })
	return client
}

// finish closes a client, whatever state it is in, and does not wait for long.
func finish(t testing.TB, client *zklock.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.Close(ctx)
	}()
	receive(t, "Close returns", done)
}

// proxy returns a proxy to an address, which is closed when the test ends.
func proxy(t testing.TB, addr string) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.StartZooKeeper(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// proxied connects a client through a proxy of its own to the shared server.
func proxied(t *testing.T, opts *zklock.Options) (*zklock.Client, *faultproxy.Proxy) {
	t.Helper()
	p := proxy(t, server(t).Addr())
	return dial(t, p.Addr(), opts), p
}

// requests counts what a client has asked, but for the syncs that an idle session
// sends of itself.
func requests(p *faultproxy.Proxy) int {
	return p.CountKind(faultproxy.ToServer, faultproxy.KindRequest) - p.Count(faultproxy.ToServer, faultproxy.OpSync)
}

// plain returns a connection that has nothing to do with the library, and is
// closed when the test ends.
func plain(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(noLog{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for deadline := time.After(patience); ; {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-deadline:
			t.Fatal("never: plain session")
		}
	}
}

type noLog struct{}

func (noLog) Printf(string, ...any) {}

// list returns the children of a znode in order, none if it is not there.
func list(t testing.TB, conn *zk.Conn, path string) []string {
	t.Helper()
	names, _, err := conn.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatalf("list %s: %v", path, err)
	}
	slices.Sort(names)
	return names
}

// holds fails the test if a znode never has just n children.
func holds(t testing.TB, conn *zk.Conn, path string, n int) []string {
	t.Helper()
	var names []string
	if !becomes(func() bool { names = list(t, conn, path); return len(names) == n }) {
		t.Fatalf("%s has children %q, want %d of them", path, names, n)
	}
	return names
}

// noResidue fails the test if anything stays below a lock's znode.
func noResidue(t testing.TB, conn *zk.Conn, path string) {
	t.Helper()
	holds(t, conn, path, 0)
}

// noWatches fails the test if watches below a lock's znode stay in the server.
func noWatches(t testing.TB, addr, path string) {
	t.Helper()
	var left []string
	if !becomes(func() bool {
		all, err := zkserver.Watches(limited(t), addr)
		if err != nil {
			t.Fatal(err)
		}
		left = left[:0]
		for watched := range all {
			if watched == path || strings.HasPrefix(watched, path+"/") {
				left = append(left, watched)
			}
		}
		return len(left) == 0
	}) {
		t.Errorf("watches left in the server: %q", left)
	}
}

// credentials notes, of the connections that a proxy makes from now on, the
// session and its password: what it takes to end the session from outside. It
// is a filter's part: call see for every frame.
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
		endSession(addr, session, password)
		sessions, err := zkserver.Dump(limited(t), addr)
		return err == nil && len(sessions.Ephemerals[session]) == 0 && !slices.Contains(sessions.Live, session)
	})
}

// endSession resumes a session and closes it. It may fail: the server hangs up
// when the session's client resumes it at the same time.
func endSession(addr string, session int64, password []byte) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	var connect []byte
	connect = binary.BigEndian.AppendUint32(connect, 0)                     // protocol
	connect = binary.BigEndian.AppendUint64(connect, 0)                     // last zxid seen
	connect = binary.BigEndian.AppendUint32(connect, 10_000)                // timeout
	connect = binary.BigEndian.AppendUint64(connect, uint64(session))       // session
	connect = binary.BigEndian.AppendUint32(connect, uint32(len(password))) // password
	connect = append(connect, password...)
	goodbye := binary.BigEndian.AppendUint32(nil, 1)           // xid
	goodbye = binary.BigEndian.AppendUint32(goodbye, 1<<32-11) // closeSession
	for _, frame := range [][]byte{connect, goodbye} {
		framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
		if _, err := conn.Write(framed); err != nil {
			return
		}
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			return
		}
	}
}

// expirable is proxied, with the means to end the client's session.
func expirable(t *testing.T, opts *zklock.Options) (*zklock.Client, *faultproxy.Proxy, func()) {
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
		p.RefuseNew() // or the client would get its session back in between
		c.expire(t, addr)
		p.Drop() // so that the client asks
		if err := p.Heal(); err != nil {
			t.Error(err)
		}
	}
}
