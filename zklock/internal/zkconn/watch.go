package zkconn

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// recheckers is how many reads are under way at a time after a reconnect.
const recheckers = 16

// watches has one watch of a kind for each znode that somebody here waits on, shared by all who do. Waiters watch by a data read (GetW):
// one on a znode that is gone already fails, and so cannot be left behind in the server, as an exists watch would be. The other kinds
// are for observers of keys that nobody holds. When they have gone, one watch per key is left, until it fires or the connection ends.
type watches struct {
	link *Link

	mu     strict.Mutex[strict.Watches]
	byPath map[watchKey]*Watch
	kept   map[watchKey]*kept
}

// watchKey is what a watch is for.
type watchKey struct {
	path string
	kind WatchKind
}

// WatchKind says what a watch fires for.
type WatchKind int

const (
	WatchData     WatchKind = iota // the znode is written to or deleted
	WatchChildren                  // a child comes or goes, or the znode is deleted
	WatchCreation                  // the znode, which is missing, is created
)

// watchKinds are all kinds for which an event may be.
var watchKinds = []WatchKind{WatchData, WatchChildren, WatchCreation}

// firedBy reports whether an event on its znode has used up a watch of this kind.
func (k WatchKind) firedBy(why zk.EventType) bool {
	switch why {
	case zk.EventNodeCreated:
		return k == WatchCreation
	case zk.EventNodeDataChanged:
		return k == WatchData
	case zk.EventNodeChildrenChanged:
		return k == WatchChildren
	}
	return true
}

// Watch is one read of a znode, and the first thing that happens to it after.
type Watch struct {
	Path string
	Kind WatchKind

	Read     chan struct{} // closed when Node, Children and Err are set
	Node     Znode         // with data only for WatchData; without stat if the znode is missing
	Children []string      // only for WatchChildren
	Err      error         // why the node could not be read: zk.ErrNoNode and the like

	Gone chan struct{} // closed when the watch has fired, or could not be set
	Why  zk.EventType  // set before that

	// Guarded by the mutex of the watches.
	owner    Owner // nil, or who created the node
	lookouts []*Lookout
	fired    bool // Gone is closed, or about to be
}

// An Owner hears first what happens to its node, in the order in which that is received.
type Owner interface {
	// Read is called when the node has been read.
	Read(w *Watch)
	// Fired is called when the watch has fired or could not be set: by the reader of the
	// connection, where it was an event.
	Fired(why zk.EventType)
}

func newWatches(l *Link) *watches {
	return &watches{link: l, byPath: make(map[watchKey]*Watch), kept: make(map[watchKey]*kept)}
}

// WatchOwn watches a znode for its owner, who hears of it before anybody else.
func (l *Link) WatchOwn(background context.Context, path string, o Owner) *Watch {
	ws := l.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(background, watchKey{path, WatchData})
	w.owner = o
	select {
	case <-w.Read: // by a waiter, before
		ws.link.tasks.Go(func(context.Context) { o.Read(w) })
	default:
	}
	return w
}

func (ws *watches) joinLocked(background context.Context, key watchKey) *Watch {
	w := ws.byPath[key]
	if w == nil {
		w = &Watch{Path: key.path, Kind: key.kind, Read: make(chan struct{}), Gone: make(chan struct{})}
		ws.byPath[key] = w
		ws.link.tasks.Go(func(context.Context) { ws.set(background, w) })
	}
	return w
}

// set sends the read. Its goroutine lives until the answer is there; closing
// the connection is an answer too.
func (ws *watches) set(background context.Context, w *Watch) {
	w.Err = ws.link.Retry(background, nil, func(*Session) error {
		return StepError("watch", w.Path, ws.send(w))
	})
	ws.mu.Lock()
	close(w.Read)
	o := w.owner
	ws.mu.Unlock()
	switch {
	case w.Err == nil && w.Kind == WatchCreation && w.Node.Stat != nil:
		ws.finish(w, zk.EventNodeCreated) // before it could be watched for
	case w.Err == nil && o != nil:
		o.Read(w)
	case w.Err == nil:
	case errors.Is(w.Err, zk.ErrNoNode):
		ws.finish(w, zk.EventNodeDeleted)
	default:
		ws.finish(w, zk.EventNotWatching)
	}
}

// send makes the read that sets a watch; onEvent hears of what it reports.
func (ws *watches) send(w *Watch) (err error) {
	conn := ws.link.conn
	if w.Kind == WatchCreation {
		ifMissing, ifThere := ws.asks(w.key()), ws.asks(watchKey{w.Path, WatchData})
		var exists bool
		if exists, w.Node.Stat, _, err = conn.ExistsW(w.Path); !exists {
			w.Node.Stat = nil
		}
		ifMissing(err == nil && !exists)
		ifThere(err == nil && exists)
		return err
	}
	answered := ws.asks(w.key())
	defer func() { answered(err == nil) }()
	switch w.Kind {
	case WatchChildren:
		w.Children, w.Node.Stat, _, err = conn.ChildrenW(w.Path)
	default:
		w.Node.Data, w.Node.Stat, _, err = conn.GetW(w.Path)
	}
	return err
}

func (w *Watch) key() watchKey { return watchKey{w.Path, w.Kind} }

// IsSet reports whether the server has set the watch. Node and Children are then as they were at that moment.
func (w *Watch) IsSet() bool {
	select {
	case <-w.Read:
		return w.Err == nil
	default:
		return false
	}
}

// Failure is why the znode could not be read; nil if it could, or if its watch
// has fired before anybody here has looked at the reply.
func (w *Watch) Failure() error {
	select {
	case <-w.Read:
		return w.Err
	default:
		return nil
	}
}

// Refused is why the server will not let the znode be read; nil if it may.
func (w *Watch) Refused() error {
	err := w.Failure()
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

// IsWatched reports whether there is a watch on a znode, which the server has set and which has not fired. An event
// that the znode is gone comes before any answer that says so.
func (l *Link) IsWatched(path string) bool {
	ws := l.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byPath[watchKey{path, WatchData}]
	return w != nil && w.IsSet()
}

// Recheck asks whether a watched znode is as it was. If not, and its watch has not reported that, it does so now, and
// Recheck returns true.
func (l *Link) Recheck(ctx context.Context, w *Watch) (untold bool) {
	if !w.IsSet() {
		return false
	}
	why, happened := l.watches.missed(ctx, w)
	return happened && l.watches.finish(w, why)
}

// finish makes a watch report what has happened. It returns false if that was done before.
func (ws *watches) finish(w *Watch, why zk.EventType) bool {
	ws.mu.Lock()
	if w.fired {
		ws.mu.Unlock()
		return false
	}
	w.fired = true
	if ws.byPath[w.key()] == w {
		delete(ws.byPath, w.key())
	}
	w.Why = why
	o := w.owner
	w.owner = nil
	ws.mu.Unlock()
	switch {
	case o == nil:
	case why == zk.EventNodeDeleted, why == zk.EventNodeDataChanged:
		// Here and now, or what is reported of another node next might be acted on
		// before. And who has a node knows first.
		o.Fired(why)
	default:
		ws.link.tasks.Go(func(context.Context) { o.Fired(why) }) // go-zookeeper may hold locks of its own
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	close(w.Gone)
	for _, l := range w.lookouts {
		l.tell(w)
	}
	return true
}

// Disown makes a watch report nothing to the owner of the znode any more. The watch stays
// in the server until the znode goes, which is now.
func (l *Link) Disown(w *Watch) {
	ws := l.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.owner = nil
}

// recheck reads again, on a new connection, the znodes that are watched by Watch. go-zookeeper has set its watches again by now, but if
// that failed it reported nothing. It ends with the connection: the next one begins anew. A znode that only its owner watches is left
// out: the owner must find out by itself whether the znode is still there.
func (ws *watches) recheck(on *Wire) {
	ws.mu.Lock()
	var shared, unused []*Watch
	for _, w := range ws.byPath {
		switch {
		case len(w.lookouts) > 0:
			shared = append(shared, w)
		case w.owner == nil:
			unused = append(unused, w)
		}
	}
	ws.mu.Unlock()
	for _, w := range unused {
		ws.finish(w, zk.EventNotWatching)
	}
	slots := make(chan struct{}, recheckers)
	var reads sync.WaitGroup
	for _, w := range shared {
		slots <- struct{}{}
		if ws.link.Wire() != on {
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
func (ws *watches) missed(ctx context.Context, w *Watch) (why zk.EventType, ok bool) {
	stat, err := ws.link.Stat(ctx, w.Path)
	missing := errors.Is(err, zk.ErrNoNode)
	var before *zk.Stat
	if w.IsSet() {
		before = w.Node.Stat
	}
	switch {
	case err != nil && !missing:
		return 0, false
	case w.Kind == WatchCreation:
		return zk.EventNodeCreated, !missing
	case missing:
		return zk.EventNodeDeleted, true
	case before == nil:
		return 0, false // it is being read
	case w.Kind == WatchChildren:
		return zk.EventNodeChildrenChanged, stat.Pzxid > before.Pzxid
	}
	return zk.EventNodeDataChanged, stat.Mzxid > before.Mzxid
}
