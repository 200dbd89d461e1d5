package dynamoserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/npmcache"
)

const (
	// startPatience bounds a start for which the caller's ctx has no nearer deadline.
	startPatience = 60 * time.Second
	// stopPatience is how long a server may take to end before it is killed. It has nothing to save.
	stopPatience = time.Second
)

// survive is run by Node.js before dynalite, which otherwise exits when a client hangs up in the middle of
// a request.
const survive = `process.on("uncaughtException", e => {
	if (e.code !== "ECONNRESET") { console.error(e); process.exit(1) }
})`

func startDynalite(ctx context.Context) (*Target, error) {
	node, err := npmcache.Node(ctx)
	if err != nil {
		return nil, fmt.Errorf("dynalite: %w (or set DYNAMODB_ENDPOINT to a running server, or start Docker)", err)
	}
	modules, err := npmcache.Modules(ctx, npmcache.Dynalite...)
	if err != nil {
		return nil, fmt.Errorf("dynalite: %w (or set DYNAMODB_ENDPOINT to a running server, or start Docker)", err)
	}
	return startProcess(
		ctx, Dynalite, node,
		"--import", "data:text/javascript,"+url.PathEscape(survive),
		filepath.Join(modules, "dynalite", "cli.js"),
		"--host", "127.0.0.1", "--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0",
		"--port",
	)
}

// startLocal starts Amazon's DynamoDB Local from an unpacked distribution.
func startLocal(ctx context.Context) (*Target, error) {
	home := os.Getenv("DYNAMODB_LOCAL_HOME")
	if home == "" {
		return nil, errors.New("DYNAMODB=local needs DYNAMODB_LOCAL_HOME: the directory into which you unpacked Amazon's DynamoDB Local")
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return nil, err
	}
	jar := filepath.Join(home, "DynamoDBLocal.jar")
	if st, err := os.Stat(jar); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("DYNAMODB_LOCAL_HOME=%s has no DynamoDBLocal.jar", home)
	}
	java := filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")
	if os.Getenv("JAVA_HOME") == "" {
		if java, err = exec.LookPath("java"); err != nil {
			return nil, errors.New("DYNAMODB=local: no java in PATH, and no JAVA_HOME")
		}
	}
	return startProcess(
		ctx, Local, java,
		"-Djava.library.path="+filepath.Join(home, "DynamoDBLocal_lib"), "-jar", jar,
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port",
	)
}

// startProcess starts a server as a child, with its port as a further argument, and returns when it serves.
func startProcess(ctx context.Context, source Source, name string, args ...string) (_ *Target, err error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	port, err := child.LeasePort()
	if err != nil {
		return nil, err
	}
	dir, lock, err := child.NewDir("holdfast-dynamo-")
	if err != nil {
		port.Release()
		return nil, err
	}
	logPath := filepath.Join(dir, "log")
	p, err := child.Start(logPath, false, name, append(args, strconv.Itoa(port.Port))...)
	t := &Target{source: source, endpoint: "http://127.0.0.1:" + strconv.Itoa(port.Port), access: anyAccess, process: p}
	t.tail = func() string { return logTail(logPath) }
	t.close = sync.OnceFunc(func() {
		if p != nil {
			p.Stop(context.Background(), stopPatience)
		}
		port.Release()
		os.RemoveAll(dir)
		lock.Close()
	})
	if err == nil {
		err = awaitProcess(ctx, p, t)
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return t, nil
}

func awaitProcess(ctx context.Context, p *child.Process, t *Target) error {
	c := t.Client(noRetry)
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := serves(attempt, c)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("ended while starting: %w; its log ends:\n%s", p.Err(), t.tail())
		case <-ctx.Done():
			return fmt.Errorf("%w: last answer: %w; its log ends:\n%s", context.Cause(ctx), err, t.tail())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func logTail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}
