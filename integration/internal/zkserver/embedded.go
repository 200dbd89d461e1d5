package zkserver

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

//go:embed Embedded.java
var embeddedSource string

// Embedded is a standalone server with a way into its data tree. It does not reap container nodes. Stop, Kill and Start work
// as on any server; what was set through the tree is not in the transaction log, so a restart may lose it.
type Embedded struct {
	*Server

	mu      sync.Mutex
	proc    *child.Process // the one that answers speaks for
	answers *bufio.Reader
}

// StartEmbedded starts a standalone server with a way into its data tree. It needs a JDK, because the server's source is
// compiled as it starts; otherwise it is like [Start].
func StartEmbedded(ctx context.Context, cfg Config) (*Embedded, error) {
	if _, err := javaTool("javac"); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults(100 * time.Millisecond)
	ports, err := child.LeasePorts(1)
	if err != nil {
		return nil, err
	}
	s, err := newServer(cfg, ports, nil, map[string]string{"Embedded.java": embeddedSource}, "Embedded.java")
	if err != nil {
		return nil, err
	}
	s.piped = true
	// Java takes a source file only by its full path: the process does not run in the directory.
	s.args[len(s.args)-2] = filepath.Join(s.dir, "Embedded.java")
	if err := s.Start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return &Embedded{Server: s}, nil
}

// SetCversion sets the counter of a node's children behind the server's back: the next sequential child of path gets the
// number n, and later ones count on from it. Nobody may be creating or deleting children of path at the time.
func (e *Embedded) SetCversion(path string, n int32) error {
	if strings.ContainsAny(path, "\r\n") {
		return fmt.Errorf("zookeeper %s: set cversion of %q: line break in path", e.Addr(), path)
	}
	answer, err := e.request(fmt.Sprintf("setcversion %d %s\n", n, path))
	if err == nil && answer != "ok" {
		err = errors.New(answer)
	}
	if err != nil {
		return fmt.Errorf("zookeeper %s: set cversion of %s to %d: %w", e.Addr(), path, n, err)
	}
	return nil
}

func (e *Embedded) request(line string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.running()
	if p == nil {
		return "", errors.New("not running")
	}
	if p != e.proc {
		e.proc, e.answers = p, bufio.NewReader(p.Stdout)
	}
	if _, err := io.WriteString(p.Stdin, line); err != nil {
		return "", err
	}
	answer, err := e.answers.ReadString('\n')
	return strings.TrimSpace(answer), err
}
