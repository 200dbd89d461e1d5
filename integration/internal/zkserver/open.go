package zkserver

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/integration/internal/docker"
)

// Source says where a [Target] comes from.
type Source string

// Where Open looks, in this order.
const (
	Given  Source = "given"  // ZOOKEEPER_SERVERS
	Docker Source = "docker" // a container of our own
	Local  Source = "local"  // a process of our own
)

// Target is a ZooKeeper service to talk to, wherever it runs. For control over a server use [Start].
type Target struct {
	source Source
	addrs  []string
	tail   func() string
	close  func()
}

// Source is where the service was found.
func (t *Target) Source() Source { return t.source }

// Addrs are the host:port of its servers.
func (t *Target) Addrs() []string { return append([]string(nil), t.addrs...) }

// LogTail returns the end of the server's log, or "" for a server that Open did not start.
func (t *Target) LogTail() string { return t.tail() }

// Close stops the server if Open has started it. It may be called more than once.
func (t *Target) Close() { t.close() }

// Open finds or starts a server that serves, in the order of the Sources. HOLDFAST_ZOOKEEPER restricts it to one of "local" and
// "docker". The configuration applies only to a server that Open starts.
func Open(ctx context.Context, cfg Config) (*Target, error) {
	only := Source(os.Getenv("HOLDFAST_ZOOKEEPER"))
	servers := os.Getenv("ZOOKEEPER_SERVERS")
	switch {
	case only != "" && only != Local && only != Docker:
		return nil, fmt.Errorf("HOLDFAST_ZOOKEEPER=%q: want local, docker or nothing", only)
	case only == "" && servers != "":
		return openGiven(ctx, servers)
	case only == Docker:
		return startContainer(ctx, cfg)
	case only == Local:
		return openLocal(ctx, cfg)
	}
	return docker.Prefer(ctx,
		func(ctx context.Context) (*Target, error) { return startContainer(ctx, cfg) },
		func(ctx context.Context) (*Target, error) { return openLocal(ctx, cfg) })
}

func openGiven(ctx context.Context, servers string) (*Target, error) {
	t := &Target{source: Given, tail: func() string { return "" }, close: func() {}}
	for addr := range strings.SplitSeq(servers, ",") {
		addr = strings.TrimSpace(addr)
		// Any answer will do: a server that we did not start need not allow this word.
		if _, err := FourLetter(ctx, addr, "srvr"); err != nil {
			return nil, fmt.Errorf("ZOOKEEPER_SERVERS=%q: %w", servers, err)
		}
		t.addrs = append(t.addrs, addr)
	}
	return t, nil
}

func openLocal(ctx context.Context, cfg Config) (*Target, error) {
	s, err := Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Target{source: Local, addrs: []string{s.Addr()}, tail: s.LogTail, close: s.Close}, nil
}
