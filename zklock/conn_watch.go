package zklock

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
)

// recheckers is how many reads are under way at a time after a reconnect.
const recheckers = 16

// watches has one watch for each znode that somebody here waits on, shared by
// all who do. A watch is a data read (GetW): one on a znode that is gone
// already fails, and so cannot be left behind in the server, as an exists watch
// would be.
type watches struct {
	link *link

	mu     sync.Mutex
	byPath map[string]*watch
}

// watch is one read of a znode, and the first thing that happens to it after.
type watch struct {
	path string

	read chan struct{} // closed when node and err are set
	node znode
	err  error // why the node could not be read: zk.ErrNoNode and the like

	gone chan struct{} // closed when the watch has fired, or could not be set
	why  zk.EventType  // set before that

	// Guarded by the mutex of the watches.
	owner  owner // nil, or who created the node
	shared bool  // others wait on it
	fired  bool  // gone is closed, or about to be
}

// An owner hears first what happens to its node, in the order in which that is received.
type owner interface {
	// read is called when the node has been read.
	read(w *watch)
	// fired is called when the watch has fired or could not be set: by the reader of the
	// connection, where it was an event.
	fired(why zk.EventType)
}

func newWatches(l *link) *watches {
	return &watches{link: l, byPath: make(map[string]*watch)}
}

// on watches a znode that is in the way of a waiter.
func (ws *watches) on(background context.Context, path string) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(background, path)
	w.shared = true
	return w
}

// onOwn watches a znode for its owner.
func (ws *watches) onOwn(background context.Context, path string, o owner) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(background, path)
	w.owner = o
	select {
	case <-w.read: // by a waiter, before
		ws.link.tasks.Go(func(context.Context) { o.read(w) })
	default:
	}
	return w
}

func (ws *watches) joinLocked(background context.Context, path string) *watch {
	w := ws.byPath[path]
	if w == nil {
		w = &watch{path: path, read: make(chan struct{}), gone: make(chan struct{})}
		ws.byPath[path] = w
		ws.link.tasks.Go(func(context.Context) { ws.set(background, w) })
	}
	return w
}

// set sends the read. Its goroutine lives until the answer is there; closing
// the connection is an answer too.
func (ws *watches) set(background context.Context, w *watch) {
	w.err = ws.link.retry(background, nil, func(*session) error {
		var err error
		w.node.data, w.node.stat, _, err = ws.link.conn.GetW(w.path) // onEvent hears of it
		return stepError("watch", w.path, err)
	})
	ws.mu.Lock()
	close(w.read)
	o := w.owner
	ws.mu.Unlock()
	switch {
	case w.err == nil && o != nil:
		o.read(w)
	case w.err == nil:
	case errors.Is(w.err, zk.ErrNoNode):
		ws.finish(w, zk.EventNodeDeleted)
	default:
		ws.finish(w, zk.EventNotWatching)
	}
}

// failure is why the znode could not be read; nil if it could, or if its watch
// has fired before anybody here has looked at the reply.
func (w *watch) failure() error {
	select {
	case <-w.read:
		return w.err
	default:
		return nil
	}
}

// fire ends the watch on a znode to which something has happened. Paths that nobody waits
// on are the application's own.
func (ws *watches) fire(path string, why zk.EventType) {
	ws.mu.Lock()
	w := ws.byPath[path]
	ws.mu.Unlock()
	if w != nil {
		ws.finish(w, why)
	}
}

func (ws *watches) finish(w *watch, why zk.EventType) {
	ws.mu.Lock()
	if w.fired {
		ws.mu.Unlock()
		return
	}
	w.fired = true
	if ws.byPath[w.path] == w {
		delete(ws.byPath, w.path)
	}
	w.why = why
	o := w.owner
	w.owner = nil
	ws.mu.Unlock()
	switch {
	case o == nil:
	case why == zk.EventNodeDeleted, why == zk.EventNodeDataChanged:
		// Here and now, or what is reported of another node next might be acted on
		// before. And who has a node knows first.
		o.fired(why)
	default:
		ws.link.tasks.Go(func(context.Context) { o.fired(why) }) // go-zookeeper may hold locks of its own
	}
	close(w.gone)
}

// disown makes a watch report nothing to the owner of the node any more. The watch stays
// in the server until the node goes, which is now.
func (ws *watches) disown(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.owner = nil
}

// any reports whether there are watches for go-zookeeper to renew.
func (ws *watches) any() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.byPath {
		select {
		case <-w.read:
			return true // one that could not be read is not kept
		default:
		}
	}
	return false
}

// recheck reads anew, after a reconnect, what is waited on. go-zookeeper has
// set its watches again by now, but if that failed it reported nothing.
func (ws *watches) recheck() {
	ws.mu.Lock()
	var shared []*watch
	for _, w := range ws.byPath {
		if w.shared {
			shared = append(shared, w)
		}
	}
	ws.mu.Unlock()
	slots := make(chan struct{}, recheckers)
	var reads sync.WaitGroup
	for _, w := range shared {
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			if _, err := ws.link.get(ws.link.closing, w.path); errors.Is(err, zk.ErrNoNode) {
				ws.finish(w, zk.EventNodeDeleted)
			}
		})
	}
	reads.Wait()
}
