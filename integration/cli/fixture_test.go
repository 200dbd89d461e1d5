// Package cli_test uses cmd/holdfast as people and scripts do: real processes, signals, terminals, servers.
package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/rogpeppe/go-internal/testscript"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/mongoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/signaltest"
	"github.com/holdfast-go/holdfast/mongolock"
	"github.com/holdfast-go/holdfast/zklock"
)

// patience bounds everything that must happen: only a failure waits that long.
const patience = 60 * time.Second

// calm is a lease that outlasts any stall of the machine, for tests that are not about its end.
const calm = "30s"

var (
	buildDir string // of the binary; made by TestMain

	build = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "holdfast")
		args := []string{"build", "-ldflags=-s -w", "-o", path} // linked sooner
		if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, ".")...)
		cmd.Dir = filepath.Join("..", "..", "cmd", "holdfast")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
		return path, nil
	})

	startZooKeeper = sync.OnceValues(func() (*zkserver.Server, error) {
		s, err := zkserver.Start(context.Background(), zkserver.Config{MaxSessionTimeout: 60 * time.Second})
		started = append(started, s)
		return s, err
	})
	started []*zkserver.Server
)

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"note-signals": noteSignals, "stamp": stamp, "adopt": adopt})
}

// suite runs the tests with what they share.
type suite struct{ *testing.M }

func (s suite) Run() int {
	signaltest.Default()
	// The tests mostly wait, so they run at the same time.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8")
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "holdfast-cli-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return verdict.Main(func() int {
		code := dynamoserver.Main(s.M)
		mongoserver.Stop()
		for _, server := range started {
			if server != nil {
				server.Close()
			}
		}
		return code
	})
}

// zookeeperServer is the server that most tests share.
func zookeeperServer(t *testing.T) *zkserver.Server {
	t.Helper()
	s, err := startZooKeeper()
	must(t, err)
	return s
}

// binary is the tool, built once.
func binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	must(t, err)
	return path
}

// An engine is a server with a proxy in front of it that can swallow all traffic.
type engine struct {
	name   string
	env    []string // for the tool, through the proxy
	direct []string // past the proxy
	cut    func()   // partitions the tool silently: nothing gets through or is refused
	heal   func()
	slow   func()                                            // delays each request by at least a tenth of a second
	deny   func(call string)                                 // has DynamoDB deny a call, and no other
	dial   func(t *testing.T, owner string) *holdfast.Client // a client of the library, past the proxy
	open   func(t *testing.T) *engine                        // another of the kind
}

// acquire acquires a lock under an owner name; it ends with the test.
func (e *engine) acquire(t *testing.T, key, owner string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := e.dial(t, owner).Acquire(limited(t), key, opts...)
	must(t, err)
	return lock
}

// next acquires a lock that will be released, releases it, and fails the test if a process is alive when the lock is granted.
func (e *engine) next(t *testing.T, key string, pids ...int) {
	t.Helper()
	lock := e.acquire(t, key, "next")
	if slices.ContainsFunc(pids, alive) {
		t.Error("another client has the lock while a process of the command is alive")
	}
	release(t, lock)
}

// expires is next for a lock that ends with its lease.
func (e *engine) expires(t *testing.T, key string, lease time.Duration, pids ...int) {
	t.Helper()
	lock := e.acquire(t, key, "next")
	if slices.ContainsFunc(pids, alive) {
		together(t, drift(lease), 0, "another client has the lock while a process of the command is alive")
	}
	release(t, lock)
}

// drift is how long before the end of a lease the tool's command is dead.
func drift(lease time.Duration) time.Duration { return driver.Margin(0, lease) }

// together is the verdict on a command that is alive when another client has its lock, and should have been dead for some
// time. A machine that stands still for longer than that lets a lease end first; nothing else excuses it. stall is the longest
// that the test has seen itself.
func together(t *testing.T, dead, stall time.Duration, format string, args ...any) {
	t.Helper()
	if stall = max(stall, verdict.Stalled(t)); stall > dead {
		verdict.Inconclusive(t, "%s; it was to be dead for %v, and the machine stood still for %v", fmt.Sprintf(format, args...), dead, stall)
	}
	t.Errorf("%s; it was to be dead for %v", fmt.Sprintf(format, args...), dead)
}

func release(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	must(t, lock.Release(limited(t)))
}

// isHeld fails the test unless others cannot acquire a key.
func isHeld(t *testing.T, e *engine, key string) {
	t.Helper()
	switch _, err := e.dial(t, "").TryAcquire(limited(t), key); {
	case err == nil:
		t.Error("TryAcquire of a held key succeeds, want ErrHeld")
	case !errors.Is(err, holdfast.ErrHeld):
		must(t, err)
	}
}

// begin begins a test beside others.
func begin(t *testing.T) {
	t.Helper()
	t.Parallel()
	verdict.Begin(t)
}

var engines = map[string]func(*testing.T) *engine{"zookeeper": newZooKeeper, "dynamodb": newDynamoDB}

// each runs a test on both engines.
func each(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Helper()
	begin(t)
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			begin(t)
			e := open(t)
			e.open = open
			test(t, e)
		})
	}
}

// clientLease is the lease of the library's clients; poll is how often those on DynamoDB look.
const (
	clientLease = 20 * time.Second
	poll        = 50 * time.Millisecond
)

func newZooKeeper(t *testing.T) *engine {
	t.Helper()
	return zooKeeperAt(t, zookeeperServer(t).Addr())
}

// zooKeeperAt is an engine for a server that a test has configured itself.
func zooKeeperAt(t *testing.T, addr string) *engine {
	t.Helper()
	p, err := faultproxy.Start(addr)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return &engine{
		name:   "zookeeper",
		env:    []string{"HOLDFAST_SERVERS=" + p.Addr(), "HOLDFAST_LEASE=" + calm},
		direct: []string{"HOLDFAST_SERVERS=" + addr, "HOLDFAST_LEASE=" + calm},
		cut:    func() { p.BlackHole(faultproxy.Both) },
		heal:   func() { _ = p.Heal() },
		slow:   func() { p.SetLatency(50 * time.Millisecond) },
		dial: func(t *testing.T, owner string) *holdfast.Client {
			t.Helper()
			c, err := zklock.Dial(limited(t), []string{addr}, &zklock.Options{SessionTimeout: clientLease, Owner: owner})
			must(t, err)
			closeAtEnd(t, c.Client)
			return c.Client
		},
	}
}

func newDynamoDB(t *testing.T) *engine {
	t.Helper()
	target := dynamoserver.Find(t)
	table := target.Table(t)
	p, err := faulthttp.Listen(target.Endpoint())
	must(t, err)
	t.Cleanup(p.Close)
	env := func(endpoint string) []string {
		return append(target.Env(),
			"AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "HOLDFAST_TABLE="+table, "HOLDFAST_PARTITION_KEY="+dynamoserver.DefaultKey,
			"HOLDFAST_POLL="+poll.String(), "HOLDFAST_LEASE="+calm)
	}
	return &engine{
		name:   "dynamodb",
		env:    env(p.URL()),
		direct: env(target.Endpoint()),
		cut:    p.Transport.Cut,
		heal:   p.Transport.Heal,
		slow:   func() { p.Transport.SetRule(faulthttp.All("", faulthttp.DelayRequest(100*time.Millisecond))) },
		deny:   func(call string) { p.Transport.SetRule(faulthttp.All(call, faulthttp.Denied())) },
		dial: func(t *testing.T, owner string) *holdfast.Client {
			t.Helper()
			ddb := target.Client(func(*dynamodb.Options) {})
			c, err := dynamolock.New(limited(t), ddb, &dynamolock.Options{
				Table: table, Owner: owner, Lease: clientLease, Poll: poll,
				Keys: dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: dynamoserver.DefaultKey}},
			})
			must(t, err)
			closeAtEnd(t, c.Client)
			return c.Client
		},
	}
}

func newMongoDB(t *testing.T) *engine {
	t.Helper()
	target := mongoserver.Find(t)
	p, err := faultproxy.Start(target.Addr)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	name := "locks-" + bson.NewObjectID().Hex()
	env := func(addr string) []string {
		return []string{
			"HOLDFAST_MONGODB=mongodb://" + addr + "/?directConnection=true", "HOLDFAST_COLLECTION=test." + name,
			"HOLDFAST_MONGODB_POLL=" + poll.String(), "HOLDFAST_LEASE=" + calm,
		}
	}
	return &engine{
		name:   "mongodb",
		env:    env(p.Addr()),
		direct: env(target.Addr),
		cut:    func() { p.BlackHole(faultproxy.Both) },
		heal:   func() { _ = p.Heal() },
		dial: func(t *testing.T, owner string) *holdfast.Client {
			t.Helper()
			locks := target.Client(t).Database("test").Collection(name)
			c, err := mongolock.New(limited(t), locks, &mongolock.Options{Owner: owner, Lease: clientLease, Poll: poll})
			must(t, err)
			closeAtEnd(t, c.Client)
			return c.Client
		},
	}
}

func closeAtEnd(t *testing.T, l *holdfast.Client) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = l.Close(ctx)
	})
}

// environment is that of this process without the tool's variables, and with more.
func environment(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "HOLDFAST_") || strings.HasPrefix(e, "AWS_")
	})
	return append(append(env, bare()...), more...)
}

// bare is what each tool of a test gets.
func bare() []string {
	return []string{"AWS_EC2_METADATA_DISABLED=true", "GORACE=halt_on_error=1 atexit_sleep_ms=0"}
}

// limited returns a context for calls that should succeed.
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

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	verdict.Must(t, err)
}

// await fails the test unless cond holds at some time.
func await(t *testing.T, cond func() bool, never string, args ...any) {
	t.Helper()
	if !becomes(cond) {
		verdict.Fatalf(t, never, args...)
	}
}

// closes waits until a channel is closed.
func closes(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		verdict.Fatalf(t, "never: %s", what)
	}
}

var keys atomic.Int64

// newKey returns a key that no other test uses.
func newKey(t *testing.T) string {
	return fmt.Sprintf("%s.%d.%d", strings.NewReplacer("/", ".", " ", "_").Replace(t.Name()), os.Getpid(), keys.Add(1))
}

// free fails the test unless a key is free.
func free(t *testing.T, e *engine, key string) {
	t.Helper()
	lock, err := e.dial(t, "").TryAcquire(limited(t), key)
	if errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("the lock was not released: %v", err)
		return
	}
	must(t, err)
	_ = lock.Release(limited(t))
}
