// Package cli_test uses the command line tool, cmd/holdfast, as a person or a script
// would: with its own binary, real processes, signals, terminals and servers.
package cli_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/signaltest"
	"github.com/holdfast-go/holdfast/zklock"
)

// patience bounds everything that must happen: only a failure waits that long.
const patience = 60 * time.Second

// calm is a lease that outlasts any slow moment of the machine, for tests that are not
// about its end.
const calm = "30s"

var (
	buildDir string // of the binary; made by TestMain

	build = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "holdfast")
		args := []string{"build", "-o", path}
		if raceEnabled {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, ".")...)
		cmd.Dir = filepath.Join("..", "..", "cmd", "holdfast")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
		return path, nil
	})

	zookeeperServer = sync.OnceValues(func() (*zkserver.Server, error) {
		s, err := zkserver.Start(context.Background(), zkserver.Config{MaxSessionTimeout: 60 * time.Second})
		started = append(started, s)
		return s, err
	})
	started []*zkserver.Server
)

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		child()
		os.Exit(0)
	}
	signaltest.Default()
	// The tests mostly wait, so they run at the same time.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8")
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "holdfast-cli-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := dynamoserver.Main(m)
	for _, s := range started {
		if s != nil {
			s.Close()
		}
	}
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// binary is the tool, built once.
func binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
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
	dial   func(t *testing.T, owner string) *holdfast.Client // a client of the library, past the proxy
	open   func(t *testing.T) *engine                        // another of the kind
}

// each runs a test on both engines.
func each(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *engine{"zookeeper": newZooKeeper, "dynamodb": newDynamoDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t)
			e.open = open
			test(t, e)
		})
	}
}

// clientLease is that of the library's clients, and poll how often those on
// DynamoDB look.
const (
	clientLease = 20 * time.Second
	poll        = 50 * time.Millisecond
)

func newZooKeeper(t *testing.T) *engine {
	t.Helper()
	server, err := zookeeperServer()
	if err != nil {
		t.Fatal(err)
	}
	return zooKeeperAt(t, server.Addr())
}

// zooKeeperAt is an engine for a server that a test has configured itself.
func zooKeeperAt(t *testing.T, addr string) *engine {
	t.Helper()
	p, err := faultproxy.Start(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return &engine{
		name:   "zookeeper",
		env:    []string{"HOLDFAST_SERVERS=" + p.Addr()},
		direct: []string{"HOLDFAST_SERVERS=" + addr},
		cut:    func() { p.BlackHole(faultproxy.Both) },
		heal:   func() { _ = p.Heal() },
		slow:   func() { p.SetLatency(50 * time.Millisecond) },
		dial: func(t *testing.T, owner string) *holdfast.Client {
			t.Helper()
			c, err := zklock.Dial(limited(t), []string{addr}, &zklock.Options{SessionTimeout: clientLease, Owner: owner})
			if err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	env := func(endpoint string) []string {
		return append(target.Env(),
			"AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "HOLDFAST_TABLE="+table, "HOLDFAST_PARTITION_KEY="+dynamoserver.DefaultKey,
			"HOLDFAST_POLL="+poll.String())
	}
	return &engine{
		name:   "dynamodb",
		env:    env(p.URL()),
		direct: env(target.Endpoint()),
		cut:    p.Transport.Cut,
		heal:   p.Transport.Heal,
		slow:   func() { p.Transport.SetRule(faulthttp.All("", faulthttp.DelayRequest(100*time.Millisecond))) },
		dial: func(t *testing.T, owner string) *holdfast.Client {
			t.Helper()
			ddb := target.Client(func(*dynamodb.Options) {})
			c, err := dynamolock.New(limited(t), ddb, &dynamolock.Options{
				Table: table, Owner: owner, Lease: clientLease, Poll: poll,
				Keys: dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: dynamoserver.DefaultKey}},
			})
			if err != nil {
				t.Fatal(err)
			}
			closeAtEnd(t, c.Client)
			return c.Client
		},
	}
}

func closeAtEnd(t *testing.T, l *holdfast.Client) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
}

// environment is that of this process without the tool's variables, and with more.
func environment(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "HOLDFAST_") || strings.HasPrefix(e, "AWS_")
	})
	return append(env, append([]string{"AWS_EC2_METADATA_DISABLED=true", "GORACE=halt_on_error=1"}, more...)...)
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

var keys atomic.Int64

// newKey returns a key that no other test uses.
func newKey(t *testing.T) string {
	return fmt.Sprintf("%s.%d.%d", strings.NewReplacer("/", ".", " ", "_").Replace(t.Name()), os.Getpid(), keys.Add(1))
}

// free fails the test unless a key is free.
func free(t *testing.T, e *engine, key string) {
	t.Helper()
	lock, err := e.dial(t, "").TryAcquire(limited(t), key)
	if err != nil {
		t.Errorf("the lock was not released: %v", err)
		return
	}
	_ = lock.Release(limited(t))
}
