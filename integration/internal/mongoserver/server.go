// Package mongoserver starts mongo-java-server, an emulator of MongoDB from Maven Central, for tests. It keeps its data in memory, writes
// each document atomically, and accepts read and write concerns without a meaning. "integration/versions.sh fetch mongo" fetches it.
//
// Environment:
//
//	HOLDFAST_MONGODB_URI    a server that is running already, as mongodb://host:port
//	HOLDFAST_MONGODB_JARS   a classpath with mongo-java-server, in place of the user's cache
package mongoserver

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

//go:embed Server.java
var source string

// version is the release that integration/versions.sh fetches.
const version = "1.47.0"

// A Target is a server.
type Target struct {
	URI    string
	Addr   string // "host:port"
	Source string // what it is, for results

	process *child.Process
	tail    func() string
	close   func()
}

// Process is the process of a server that Open has started; nil otherwise.
func (t *Target) Process() *child.Process { return t.process }

// LogTail is the end of the log of a server that Open has started.
func (t *Target) LogTail() string { return t.tail() }

// Close stops the server if Open has started it. It may be called more than once.
func (t *Target) Close() { t.close() }

// Client returns a client of a server, by way of a proxy if its address is given.
func (t *Target) Client(tb testing.TB, proxy ...string) *mongo.Client {
	tb.Helper()
	set := options.Client().ApplyURI(t.URI).SetDirect(true)
	if len(proxy) > 0 {
		set.SetHosts(proxy)
	}
	c, err := mongo.Connect(set)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c
}

// Open finds or starts a server, and returns when it serves.
func Open(ctx context.Context) (_ *Target, err error) {
	if uri := os.Getenv("HOLDFAST_MONGODB_URI"); uri != "" {
		set := options.Client().ApplyURI(uri)
		if err := set.Validate(); err != nil {
			return nil, fmt.Errorf("HOLDFAST_MONGODB_URI: %w", err)
		}
		return &Target{URI: uri, Addr: set.Hosts[0], Source: "given", tail: func() string { return "" }, close: func() {}}, nil
	}
	jars := os.Getenv("HOLDFAST_MONGODB_JARS")
	if jars == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		lib := filepath.Join(cache, "holdfast", "maven", "mongo-java-server-"+version, "lib")
		if _, err := os.Stat(lib); err != nil {
			return nil, fmt.Errorf("no mongo-java-server: %w; \"make setup\" fetches it, or set HOLDFAST_MONGODB_JARS or HOLDFAST_MONGODB_URI", err)
		}
		jars = filepath.Join(lib, "*")
	}
	java, err := zkserver.Java("java")
	if err != nil {
		return nil, err
	}
	classes, err := zkserver.Compile("Server", source, jars)
	if err != nil {
		return nil, err
	}
	return start(ctx, java, "-Xmx256m", "-cp", classes+string(filepath.ListSeparator)+jars, "Server")
}

// start starts a server as a child, with its port as a further argument.
func start(ctx context.Context, name string, args ...string) (_ *Target, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	port, err := child.LeasePort()
	if err != nil {
		return nil, err
	}
	dir, lock, err := child.NewDir("holdfast-mongo-")
	if err != nil {
		port.Release()
		return nil, err
	}
	logPath := filepath.Join(dir, "log")
	p, err := child.Start(logPath, false, name, append(args, strconv.Itoa(port.Port))...)
	addr := "127.0.0.1:" + strconv.Itoa(port.Port)
	t := &Target{URI: "mongodb://" + addr, Addr: addr, Source: "mongo-java-server " + version, process: p}
	t.tail = func() string { return child.Tail(logPath) }
	t.close = sync.OnceFunc(func() {
		if p != nil {
			p.Stop(context.Background(), time.Second)
		}
		port.Release()
		os.RemoveAll(dir)
		lock.Close()
	})
	if err == nil {
		var c *mongo.Client
		if c, err = mongo.Connect(options.Client().ApplyURI(t.URI)); err == nil {
			err = p.Await(ctx, func(ctx context.Context) error { return c.Ping(ctx, nil) })
			_ = c.Disconnect(context.Background())
		}
	}
	if err != nil {
		err = fmt.Errorf("mongo-java-server: %w; its log ends:\n%s", err, t.tail())
		t.close()
		return nil, err
	}
	return t, nil
}

// shared is the one server of a test binary.
var shared struct {
	once   sync.Once
	target *Target
	err    error
}

// Stop stops the server of [Find]. Call it from TestMain.
func Stop() {
	if shared.target != nil {
		shared.target.Close()
	}
}

// Find is [Open] for tests: all tests of the binary get the same server.
func Find(tb testing.TB) *Target {
	tb.Helper()
	shared.once.Do(func() { shared.target, shared.err = Open(context.Background()) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.target
}
