package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A server can part from its ensemble: it goes on showing an ephemeral znode
// that all others have deleted, for as long as it follows. (ZOOKEEPER-5010 has a
// cause: a follower that learns from a new leader what it has missed keeps nodes
// of sessions that have ended. A server that becomes leader itself drops them.)
// Nothing that such a server is asked tells, not even after a sync, and whoever
// waits there for that znode to go waits for ever. But transactions go by the
// leader's tree. So what has been in the way for long is put to the leader.

// A node is doubted when it is this many session timeouts old, or somebody has
// waited for so many; and then at intervals that double, up to the longest.
const (
	firstDoubt = 2
	mostDoubt  = 16
)

// doubts are znodes of others that have held up a client for so long that the
// leader is to be asked whether they are there.
type doubts struct {
	b *engine

	mu    sync.Mutex
	paths map[string]struct{}
	busy  bool      // a task asks
	aged  time.Time // when a node's age has raised one last
}

func newDoubts(b *engine) *doubts { return &doubts{b: b, paths: make(map[string]struct{})} }

// about makes sure, in the background, that a znode is there for the leader too.
func (d *doubts) about(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paths[path] = struct{}{}
	if d.busy {
		return
	}
	d.busy = true
	d.b.spawn(func(ctx context.Context) {
		for path := d.next(); path != ""; path = d.next() {
			d.b.link.compare(ctx, path)
		}
	})
}

// next returns a path to ask about; "" ends the task.
func (d *doubts) next() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path := range d.paths {
		delete(d.paths, path)
		return path
	}
	d.busy = false
	return ""
}

// ifOld is told of a znode that has just been found in the way, and when it was
// made. Its age, by clocks that need not agree, decides only whether it is worth
// a question; there is one per session timeout at most.
func (d *doubts) ifOld(path string, made time.Time) {
	timeout := d.b.sessionTimeout()
	if time.Since(made) < firstDoubt*timeout {
		return
	}
	d.mu.Lock()
	early := time.Since(d.aged) < timeout
	if !early {
		d.aged = time.Now()
	}
	d.mu.Unlock()
	if !early {
		d.about(path)
	}
}

// compare leaves the present server if that has a znode which the leader has
// not. When the answer to a transaction comes, the server has carried out all
// that the leader had before. Being wrong would cost a reconnection.
func (l *link) compare(ctx context.Context, path string) {
	_, err := retry(ctx, l, func(ctx context.Context) (struct{}, error) {
		w := l.present()
		if err := l.check(ctx, path); !errors.Is(err, zk.ErrNoNode) {
			return struct{}{}, err
		}
		_, err := l.get(ctx, path)
		if err == nil && l.present() == w {
			l.host.Logger().Warn("the server shows a znode that the leader has not, and is left for the next", "path", path)
			l.drop(w)
		}
		return struct{}{}, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) && ctx.Err() == nil {
		l.host.Logger().Debug("cannot ask the leader about a znode", "path", path, "error", err)
	}
}
