package zkserver

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

//go:embed Embedded.java
var embeddedSource string

// Embedded is a standalone server with access to its data tree. It does not reap container nodes. Stop, Kill and Start
// work as on any server; changes made through the tree are not in the transaction log, so a restart may lose them.
type Embedded struct {
	*Server
}

// StartEmbedded starts a standalone server with access to its data tree. It needs a JDK, because the server's source is
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
	s, err := newControlled(cfg, ports, nil, nil, "Embedded.java", embeddedSource)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return &Embedded{Server: s}, nil
}

// SetCversion sets the counter of a node's children directly: the next sequential child of path gets the number n, and
// later ones count up from it. No client may create or delete children of path meanwhile.
func (e *Embedded) SetCversion(path string, n int32) error {
	if err := e.control.request(context.Background(), fmt.Sprintf("setcversion %d %s", n, path)); err != nil {
		return fmt.Errorf("zookeeper %s: set cversion of %s to %d: %w", e.Addr(), path, n, err)
	}
	return nil
}
