package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// A server can part from its ensemble: it goes on showing an ephemeral znode
// that all others have deleted, for as long as it follows. (ZOOKEEPER-5010 has a
// cause: a follower that learns from a new leader what it has missed keeps nodes
// of sessions that have ended. A server that becomes leader itself drops them.)
// Nothing that such a server is asked tells, not even after a sync, and whoever
// waits there for that znode to go waits for ever. But transactions go by the
// leader's tree. So what has been in the way for long is put to the leader.

// A waiter has doubts when it has waited this many session timeouts for the
// same node, and then at intervals that double, up to the longest.
const (
	firstDoubt = 2
	mostDoubt  = 64
)

// doubts are znodes of others that have held up a client for so long that the
// leader is to be asked whether they are there.
type doubts struct {
	b *backend

	mu    sync.Mutex
	paths map[string]struct{}
	busy  bool      // a task asks
	tried time.Time // when a refusal raised one last
}

func newDoubts(b *backend) *doubts { return &doubts{b: b, paths: make(map[string]struct{})} }

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

// aboutHolder is told of a holder by whom a call was refused that does not wait
// for long. The holder's age, by clocks that need not agree, decides only
// whether it is worth a question; there is one per session timeout at most.
func (d *doubts) aboutHolder(parent string, holder holdfast.Info) {
	timeout := d.b.sessionTimeout()
	if holder.Grant == "" || time.Since(holder.Since) < firstDoubt*timeout {
		return
	}
	d.mu.Lock()
	early := time.Since(d.tried) < timeout
	if !early {
		d.tried = time.Now()
	}
	d.mu.Unlock()
	if !early {
		d.about(parent + "/" + holder.Grant)
	}
}

// compare leaves the present server if that has a znode which the leader has
// not. When the answer to a transaction comes, the server has carried out all
// that the leader had before. Being wrong would cost a reconnection.
func (l *link) compare(ctx context.Context, path string) {
	w := l.present()
	if w == nil || !errors.Is(l.check(ctx, path), zk.ErrNoNode) {
		return
	}
	if _, err := l.get(ctx, path); err != nil || l.present() != w {
		return
	}
	l.host.Logger().Warn("the server shows a znode that the leader has not, and is left for the next", "path", path)
	l.drop(w)
}
