package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// An observer watches the nodes of one lock in the server: how long each existed, and why it was deleted. It distinguishes a peer
// that was stopped for longer than its session and still believes in its lock from a peer whose lock another one took.
type observer struct {
	addr string
	conn *zk.Conn
	path string

	mu    sync.Mutex
	nodes map[uint64]*observed // by czxid, which is the token
	names map[string]*observed // of existing nodes
}

// observed is the record of one node, with times of history.Now.
type observed struct {
	session int64
	seen    int64 // it existed at this time: a list requested later shows it
	gone    int64 // it was gone at this time; 0: it still exists
	expired bool  // it was deleted with its session
}

// observe watches until ctx is done, and then closes done.
func observe(ctx context.Context, t *testing.T, addr string, conn *zk.Conn, parent string) (o *observer, done <-chan struct{}) {
	o = &observer{addr: addr, conn: conn, path: parent, nodes: make(map[uint64]*observed), names: make(map[string]*observed)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := o.look(); err != nil {
				t.Errorf("observer: %v", err)
				return
			}
			sleepFor(ctx, 10*time.Millisecond)
		}
	}()
	return o, ended
}

// look compares the current nodes with the previous ones.
func (o *observer) look() error {
	asked := history.Now()
	names, _, err := o.conn.Children(o.path)
	if err != nil {
		return err
	}
	answered := history.Now()
	for _, name := range names {
		n := o.names[name]
		if n == nil {
			found, stat, err := o.conn.Exists(path.Join(o.path, name))
			if err != nil {
				return err
			}
			if !found {
				continue // it came and went
			}
			n = &observed{session: stat.EphemeralOwner}
			o.names[name] = n
			o.mu.Lock()
			o.nodes[uint64(stat.Czxid)] = n
			o.mu.Unlock()
		}
		o.mu.Lock()
		n.seen = max(n.seen, asked)
		o.mu.Unlock()
	}
	gone := maps.Clone(o.names)
	for _, name := range names {
		delete(gone, name)
	}
	if len(gone) == 0 {
		return nil
	}
	// One look at the sessions for all: a look for each would take so long on a busy machine that nodes come and go meanwhile.
	live, err := o.sessions()
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, n := range gone {
		delete(o.names, name)
		n.gone, n.expired = answered, !slices.Contains(live, n.session)
	}
	return nil
}

// sessions returns the sessions that the server knows. The server forgets an expired session before it deletes its nodes, so there is no
// gap.
func (o *observer) sessions() ([]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sessions, err := zkserver.Dump(ctx, o.addr)
	if err == nil && len(sessions.Live) == 0 {
		err = errors.New("the server shows no sessions, not even the observer's")
	}
	return sessions.Live, err
}

// judge excuses holds of a witness where that is due, and returns the violations: a peer's hold that ended with its session
// counts only as long as its node was seen. Ours are never excused.
func (o *observer) judge(w *witness) (robbed []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.holds {
		n := o.nodes[h.token]
		switch {
		case n == nil || n.gone == 0:
		case n.expired:
			if !ours(h.language) {
				h.until = n.seen
			}
		case h.to > n.gone:
			robbed = append(robbed, fmt.Sprintf("the node of %v was deleted, and not by its session's end, %v before it was given back",
				h, time.Duration(h.to-n.gone)))
		}
	}
	return robbed
}
