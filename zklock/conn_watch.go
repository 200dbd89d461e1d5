package zklock

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"
)

// recheckers is how many reads are under way at a time after a reconnect.
const recheckers = 16

// watches has one watch of a kind for each znode that somebody here waits on, shared by
// all who do. Waiters watch by a data read (GetW): one on a znode that is gone
// already fails, and so cannot be left behind in the server, as an exists watch
// would be. The other kinds are for observers of keys that nobody holds. What is left of
// those when they have gone is one watch per key, until it fires or is used again.
type watches struct {
	link *link

	mu     sync.Mutex
	byPath map[watchKey]*watch
	kept   map[watchKey]*kept
}

// watchKey is what a watch is for.
type watchKey struct {
	path string
	kind watchKind
}

// watchKind says what a watch fires for.
type watchKind int

const (
	watchData     watchKind = iota // the znode is written to or deleted
	watchChildren                  // a child comes or goes, or the znode is deleted
	watchCreation                  // the znode, which is missing, is created
)

// watchKinds are all kinds for which an event may be.
var watchKinds = []watchKind{watchData, watchChildren, watchCreation}

// firedBy reports whether an event on its znode has used up a watch of this kind.
func (k watchKind) firedBy(why zk.EventType) bool {
	switch why {
	case zk.EventNodeCreated:
		return k == watchCreation
	case zk.EventNodeDataChanged:
		return k == watchData
	case zk.EventNodeChildrenChanged:
		return k == watchChildren
	}
	return true
}

// watch is one read of a znode, and the first thing that happens to it after.
type watch struct {
	watchKey

	read     chan struct{} // closed when node, children and err are set
	node     znode         // without data but of the kind watchData; without stat if the znode is missing
	children []string      // of the kind watchChildren
	err      error         // why the node could not be read: zk.ErrNoNode and the like

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
	return &watches{link: l, byPath: make(map[watchKey]*watch), kept: make(map[watchKey]*kept)}
}

// on watches a znode that is in the way of a waiter.
func (ws *watches) on(background context.Context, path string) *watch {
	return ws.onKind(background, watchKey{path, watchData})
}

// onKind watches a znode for whoever wants to know.
func (ws *watches) onKind(background context.Context, key watchKey) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(background, key)
	w.shared = true
	return w
}

// onOwn watches a znode for its owner.
func (ws *watches) onOwn(background context.Context, path string, o owner) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(background, watchKey{path, watchData})
	w.owner = o
	select {
	case <-w.read: // by a waiter, before
		ws.link.tasks.Go(func(context.Context) { o.read(w) })
	default:
	}
	return w
}

func (ws *watches) joinLocked(background context.Context, key watchKey) *watch {
	w := ws.byPath[key]
	if w == nil {
		w = &watch{watchKey: key, read: make(chan struct{}), gone: make(chan struct{})}
		ws.byPath[key] = w
		ws.link.tasks.Go(func(context.Context) { ws.set(background, w) })
	}
	return w
}

// set sends the read. Its goroutine lives until the answer is there; closing
// the connection is an answer too.
func (ws *watches) set(background context.Context, w *watch) {
	w.err = ws.link.retry(background, nil, func(*session) error {
		return stepError("watch", w.path, ws.send(w))
	})
	ws.mu.Lock()
	close(w.read)
	o := w.owner
	ws.mu.Unlock()
	switch {
	case w.err == nil && w.kind == watchCreation && w.node.stat != nil:
		ws.finish(w, zk.EventNodeCreated) // before it could be watched for
	case w.err == nil && o != nil:
		o.read(w)
	case w.err == nil:
	case errors.Is(w.err, zk.ErrNoNode):
		ws.finish(w, zk.EventNodeDeleted)
	default:
		ws.finish(w, zk.EventNotWatching)
	}
}

// send makes the read that sets a watch; onEvent hears of what it reports.
func (ws *watches) send(w *watch) (err error) {
	conn := ws.link.conn
	if w.kind == watchCreation {
		ifMissing, ifThere := ws.asks(w.watchKey), ws.asks(watchKey{w.path, watchData})
		var exists bool
		if exists, w.node.stat, _, err = conn.ExistsW(w.path); !exists {
			w.node.stat = nil
		}
		ifMissing(err == nil && !exists)
		ifThere(err == nil && exists)
		return err
	}
	answered := ws.asks(w.watchKey)
	defer func() { answered(err == nil) }()
	switch w.kind {
	case watchChildren:
		w.children, w.node.stat, _, err = conn.ChildrenW(w.path)
	default:
		w.node.data, w.node.stat, _, err = conn.GetW(w.path)
	}
	return err
}

// set reports whether the server has set it.
func (w *watch) set() bool {
	select {
	case <-w.read:
		return w.err == nil
	default:
		return false
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

// refused is why the server will not let the znode be read; nil if it may.
func (w *watch) refused() error {
	err := w.failure()
	if err == nil || errors.Is(err, zk.ErrNoNode) || transient(err) {
		return nil
	}
	return err
}

// fire ends the watches on a znode to which something has happened. Paths that nobody waits
// on are the application's own.
func (ws *watches) fire(path string, why zk.EventType) {
	for _, kind := range watchKinds {
		if !kind.firedBy(why) {
			continue
		}
		key := watchKey{path, kind}
		ws.mu.Lock()
		w := ws.byPath[key]
		if k := ws.kept[key]; k != nil {
			k.set = false
			k.fired++
			ws.forgetLocked(key, k)
		}
		ws.mu.Unlock()
		if w != nil {
			ws.finish(w, why)
		}
	}
}

// awaits reports whether somebody waits for a znode to go. Events that tell so come before any answer that does.
func (ws *watches) awaits(path string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byPath[watchKey{path, watchData}]
	return w != nil && w.set()
}

// untold returns what has happened to a znode since it was read, if its watch has not reported it.
func (ws *watches) untold(ctx context.Context, w *watch) (why zk.EventType, yes bool) {
	if !w.set() {
		return 0, false
	}
	why, happened := ws.missed(ctx, w)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return why, happened && !w.fired
}

func (ws *watches) finish(w *watch, why zk.EventType) {
	ws.mu.Lock()
	if w.fired {
		ws.mu.Unlock()
		return
	}
	w.fired = true
	if ws.byPath[w.watchKey] == w {
		delete(ws.byPath, w.watchKey)
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

// recheck reads anew, on a new connection, what is waited on. go-zookeeper has
// set its watches again by now, but if that failed it reported nothing. It ends with the connection:
// the next one begins anew.
func (ws *watches) recheck(on *wire) {
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
		if ws.link.present() != on {
			break
		}
		reads.Go(func() {
			defer func() { <-slots }()
			if why, ok := ws.missed(ws.link.closing, w); ok {
				ws.finish(w, why)
			}
		})
	}
	reads.Wait()
}

// missed reads a watched znode, and returns what has happened to it that its watch should
// have reported, if anything has.
func (ws *watches) missed(ctx context.Context, w *watch) (why zk.EventType, ok bool) {
	stat, err := ws.link.stat(ctx, w.path)
	missing := errors.Is(err, zk.ErrNoNode)
	var before *zk.Stat
	select {
	case <-w.read:
		before = w.node.stat
	default:
	}
	switch {
	case err != nil && !missing:
		return 0, false
	case w.kind == watchCreation:
		return zk.EventNodeCreated, !missing
	case missing:
		return zk.EventNodeDeleted, true
	case before == nil:
		return 0, false // it is being read
	case w.kind == watchChildren:
		return zk.EventNodeChildrenChanged, stat.Pzxid > before.Pzxid
	}
	return zk.EventNodeDataChanged, stat.Mzxid > before.Mzxid
}
