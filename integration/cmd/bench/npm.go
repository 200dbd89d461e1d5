package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/npmcache"
)

//go:embed npm.js
var npmScript string

// npmProcess is a Node.js process with the npm client.
type npmProcess struct {
	process *child.Process
	said    *bufio.Reader
	dir     string
	lock    *os.File
}

func startNPM(ctx context.Context, e *dynamoEnv, key string) (*npmProcess, error) {
	node, err := npmcache.Node(ctx)
	if err != nil {
		return nil, err
	}
	modules, err := npmcache.Modules(ctx, npmcache.LockClient...)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"modules":      modules,
		"table":        e.table,
		"partitionKey": dynamoserver.DefaultKey,
		"key":          key,
		"owner":        owner,
		"leaseMs":      dynamolock.DefaultLease.Milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	n := &npmProcess{}
	if n.dir, n.lock, err = child.NewDir("holdfast-bench-"); err != nil {
		return nil, err
	}
	args := append(e.target.Env(), "AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE=1",
		node, "--expose-gc", "--eval", npmScript, string(config))
	if n.process, err = child.Start(n.log(), true, "env", args...); err != nil {
		n.close()
		return nil, err
	}
	n.said = bufio.NewReader(n.process.Stdout)
	return n, nil
}

func (n *npmProcess) log() string { return filepath.Join(n.dir, "log") }

func (n *npmProcess) close() {
	if n.process != nil {
		n.process.Kill()
		_ = n.process.Stdout.Close()
	}
	_ = os.RemoveAll(n.dir)
	_ = n.lock.Close()
}

// block makes the process do ops acquisitions and releases. The process times
// them itself.
func (n *npmProcess) block(ctx context.Context, ops int) (time.Duration, error) {
	stop := context.AfterFunc(ctx, n.process.Kill)
	defer stop()
	if _, err := fmt.Fprintf(n.process.Stdin, "run %d\n", ops); err != nil {
		return 0, n.failure(ctx, err)
	}
	line, err := n.said.ReadString('\n')
	if err != nil {
		return 0, n.failure(ctx, err)
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return time.Duration(ns), err
}

func (n *npmProcess) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n.process.Kill() // it has ended, or cannot be used any more
	log, logErr := os.ReadFile(n.log())
	return fmt.Errorf("%w; the process: %w; it said:\n%s", errors.Join(err, logErr), n.process.Err(), log)
}
