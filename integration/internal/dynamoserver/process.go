package dynamoserver

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/npm"
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
	node, err := npm.Node()
	if err != nil {
		return nil, fmt.Errorf("dynalite: %w (or set DYNAMODB_ENDPOINT to a running server, or start Docker)", err)
	}
	modules, err := npm.Modules()
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
	t.tail = func() string { return child.Tail(logPath) }
	t.close = sync.OnceFunc(func() {
		if p != nil {
			p.Stop(context.Background(), stopPatience)
		}
		port.Release()
		os.RemoveAll(dir)
		lock.Close()
	})
	if err == nil {
		c := t.Client(noRetry)
		err = p.Await(ctx, func(ctx context.Context) error { return serves(ctx, c) })
	}
	if err != nil {
		err = fmt.Errorf("%s: %w; its log ends:\n%s", source, err, t.tail())
		t.close()
		return nil, err
	}
	return t, nil
}
