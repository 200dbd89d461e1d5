package zkconn

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// renewers is how many watches are set again at a time after a reconnect.
const renewers = 256

// watches has one watch of each kind per znode, which all waiters of this client share. Waiters watch by a data read (GetW): on a
// deleted znode it fails and leaves no watch in the server, as an exists watch would. The other kinds serve observers of free keys.
//
// A watch ends with its connection. On the next connection the link sets it again, by a read that shows whether anything has
// happened meanwhile.
type watches struct {
	link *Link

	mu     strict.Mutex[strict.Watches]
	byPath map[watchKey]*Watch
}

// watchKey names a watch.
type watchKey struct {
	path string
	kind WatchKind
}

// WatchKind says what fires a watch.
type WatchKind int

const (
	WatchData     WatchKind = iota // the znode is written to or deleted
	WatchChildren                  // a child comes or goes, or the znode is deleted
	WatchCreation                  // the znode, which is missing, is created
)

var allKinds = []WatchKind{WatchData, WatchChildren, WatchCreation}

// kindOf is the only kind of watch that an event uses up. Other events use up watches of all kinds.
var kindOf = map[zk.EventType]WatchKind{
	zk.EventNodeDataChanged: WatchData, zk.EventNodeChildrenChanged: WatchChildren, zk.EventNodeCreated: WatchCreation,
}

// Watch is one read of a znode, and the first thing that happens to the znode after that.
type Watch struct {
	Path string
	Kind WatchKind

	Read chan struct{} // closed when Node and Err are set
	Node Znode         // with data or children, by Kind; without stat if the znode is missing
	Err  error         // why the node could not be read: zk.ErrNoNode and the like

	Gone chan struct{} // closed when the watch has fired, or could not be set
	Why  zk.EventType  // set before that

	// Guarded by the mutex of the watches.
	owner    Owner // of the node; nil for none
	lookouts []*Lookout
	fired    bool  // Gone is closed, or about to be
	on       *Wire // the connection on which the server has set the watch
}

// An Owner learns first what happens to its node, in the order in which the client receives it.
type Owner interface {
	// Read is called when the node has been read for the first time.
	Read(node Znode)
	// Fired is called when the watch has fired or could not be set: by the reader of the
	// connection, where it was an event. err is why the znode could not be read; nil if it was.
	Fired(why zk.EventType, err error)
}

// WatchOwn watches a znode for its owner.
func (l *Link) WatchOwn(path string, o Owner) *Watch {
	ws := l.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(watchKey{path, WatchData})
	w.owner = o
	select {
	case <-w.Read: // by a waiter, before
		if w.Err == nil {
			ws.link.tasks.Go(func(context.Context) { o.Read(w.Node) })
		}
	default:
	}
	return w
}

// Disown makes a watch report nothing to the owner of the znode any more. The watch stays in the server until the znode goes, which is now.
func (l *Link) Disown(w *Watch) {
	l.watches.mu.Lock()
	defer l.watches.mu.Unlock()
	w.owner = nil
}

func (ws *watches) joinLocked(key watchKey) *Watch {
	w := ws.byPath[key]
	if w == nil {
		w = &Watch{Path: key.path, Kind: key.kind, Read: make(chan struct{}), Gone: make(chan struct{})}
		ws.byPath[key] = w
		ws.link.tasks.Go(func(context.Context) { ws.set(ws.link.closing, w, true) })
	}
	return w
}

// set makes the first read, or one on a new connection, and makes the watch report what has happened before that read.
func (ws *watches) set(ctx context.Context, w *Watch, first bool) {
	var node Znode
	err := ws.link.Retry(ctx, nil, func(*Session) (err error) {
		on := ws.link.Wire()
		if node, err = ws.read(ctx, w, on); err != nil {
			return err
		}
		ws.mu.Lock()
		defer ws.mu.Unlock()
		if ws.link.Wire() != on {
			return zk.ErrConnectionClosed // the watch is lost with the connection
		}
		w.on = on
		if first {
			w.Node = node
			close(w.Read)
		}
		return nil
	})
	if first && err != nil {
		w.Err = err
		close(w.Read)
	}
	ws.mu.Lock()
	o := w.owner
	ws.mu.Unlock()
	switch why := w.missed(node.Stat, err); {
	case why != 0:
		ws.finish(w, why, err)
	case err != nil && (first || ctx.Err() == nil):
		ws.finish(w, zk.EventNotWatching, err)
	case first && err == nil && o != nil:
		o.Read(node)
	}
}

// read makes the read that sets a watch in the server, on a connection.
func (ws *watches) read(ctx context.Context, w *Watch, on *Wire) (Znode, error) {
	if on == nil {
		return Znode{}, StepError("watch", w.Path, zk.ErrNoServer)
	}
	return call(ctx, ws.link, "watch", w.Path, func(*zk.Conn) (f Znode, err error) {
		switch w.Kind {
		case WatchCreation:
			var exists bool
			if exists, f.Stat, _, err = on.conn.ExistsW(w.Path); !exists {
				f.Stat = nil
			}
		case WatchChildren:
			f.Children, f.Stat, _, err = on.conn.ChildrenW(w.Path)
		default:
			f.Data, f.Stat, _, err = on.conn.GetW(w.Path)
		}
		return f, err
	})
}

// Outcome returns whether the first read has ended, and its error. Without an error the server has set the watch.
func (w *Watch) Outcome() (ended bool, err error) {
	select {
	case <-w.Read:
		return true, w.Err
	default:
		return false, nil
	}
}

// Watching reports whether the server has set a watch on the present connection, and it has not fired.
func (l *Link) Watching(w *Watch) bool {
	l.watches.mu.Lock()
	defer l.watches.mu.Unlock()
	return w != nil && w.on != nil && !w.fired && l.Wire() == w.on
}

// Hides returns the connection to a server that shows a znode that the leader does not have, or has sent no event of a change; otherwise
// nil. When the reply to a transaction comes, the server has carried out all that the leader had before, and has reported it to the
// watches of this client.
func (l *Link) Hides(ctx context.Context, path string) (by *Wire) {
	_ = l.Retry(ctx, nil, func(*Session) error {
		on := l.Wire()
		var watches []*Watch // that have not fired
		for _, kind := range allKinds {
			l.watches.mu.Lock()
			w := l.watches.byPath[watchKey{path, kind}]
			l.watches.mu.Unlock()
			if l.Watching(w) {
				watches = append(watches, w)
			}
		}
		leader := l.Check(ctx, path)
		if leader != nil && !errors.Is(leader, zk.ErrNoNode) {
			return leader
		}
		node, err := l.Get(ctx, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		missed := func(w *Watch) bool { return l.Watching(w) && w.missed(node.Stat, err) != 0 }
		if leader != nil && err == nil || slices.ContainsFunc(watches, missed) {
			by = on
		}
		return nil
	})
	return by
}

// fire ends the watches on a znode to which something has happened. Other paths are the application's own.
func (ws *watches) fire(path string, why zk.EventType) {
	for _, kind := range allKinds {
		if only, ok := kindOf[why]; ok && kind != only {
			continue
		}
		ws.mu.Lock()
		w := ws.byPath[watchKey{path, kind}]
		ws.mu.Unlock()
		if w != nil {
			ws.finish(w, why, nil)
		}
	}
}

// finish makes a watch report what has happened, unless it did so before. err is for the owner.
func (ws *watches) finish(w *Watch, why zk.EventType, err error) {
	ws.mu.Lock()
	if w.fired {
		ws.mu.Unlock()
		return
	}
	w.fired = true
	if key := (watchKey{w.Path, w.Kind}); ws.byPath[key] == w {
		delete(ws.byPath, key)
	}
	w.Why = why
	o := w.owner
	w.owner, w.on = nil, nil
	ws.mu.Unlock()
	switch {
	case o == nil:
	case why == zk.EventNodeDeleted, why == zk.EventNodeDataChanged:
		o.Fired(why, err) // here and now: the holder knows first, and the client acts on events in order
	default:
		ws.link.tasks.Go(func(context.Context) { o.Fired(why, err) }) // go-zookeeper may hold locks of its own
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	close(w.Gone)
	for _, l := range w.lookouts {
		select {
		case l.Fired <- w:
		default:
		}
	}
}

// all returns the watches that have been read, but not on a connection. Those on own nodes are first: the holder knows first.
func (ws *watches) all(except *Wire) []*Watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var own, others []*Watch
	for _, w := range ws.byPath {
		switch {
		case w.on == nil || w.on == except:
		case w.owner != nil:
			own = append(own, w)
		default:
			others = append(others, w)
		}
	}
	return append(own, others...)
}

// renew sets the watches of former connections again on a new one. It ends with the connection: the next one begins anew.
func (ws *watches) renew(on *Wire) {
	slots := make(chan struct{}, renewers)
	var reads sync.WaitGroup
	for _, w := range ws.all(on) {
		slots <- struct{}{}
		if on.Alive.Err() != nil {
			break
		}
		reads.Go(func() {
			defer func() { <-slots }()
			ws.mu.Lock()
			used := len(w.lookouts) > 0 || w.owner != nil
			ws.mu.Unlock()
			if used {
				ws.set(on.Alive, w, false)
			} else {
				ws.finish(w, zk.EventNotWatching, nil)
			}
		})
	}
	reads.Wait()
}

// missed returns what has happened to a watched znode since the first read, by the outcome of another read; 0 for nothing.
func (w *Watch) missed(now *zk.Stat, err error) zk.EventType {
	before, missing := w.Node.Stat, now == nil || errors.Is(err, zk.ErrNoNode)
	switch {
	case err != nil && !errors.Is(err, zk.ErrNoNode):
	case w.Kind == WatchCreation && !missing:
		return zk.EventNodeCreated
	case w.Kind == WatchCreation:
	case missing:
		return zk.EventNodeDeleted
	case w.Kind == WatchChildren && now.Pzxid != before.Pzxid:
		return zk.EventNodeChildrenChanged
	case w.Kind == WatchData && now.Mzxid != before.Mzxid:
		return zk.EventNodeDataChanged
	}
	return 0
}

// A Lookout is a set of watches, at most one of each path, whose events arrive on one channel. It belongs to one goroutine.
type Lookout struct {
	Watches map[string]*Watch // by path; a caller deletes those that have fired
	Fired   chan *Watch       // receives each watch that has fired, as far as there is room

	link *Link
}

// NewLookout returns a Lookout without watches, whose channel has room for some.
func (l *Link) NewLookout(room int) *Lookout {
	return &Lookout{Watches: make(map[string]*Watch, room), Fired: make(chan *Watch, room), link: l}
}

// Watch adds a watch.
func (o *Lookout) Watch(path string, kind WatchKind) *Watch {
	ws := o.link.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.joinLocked(watchKey{path, kind})
	w.lookouts = append(w.lookouts, o)
	o.Watches[path] = w
	return w
}

// End gives the watches up. A watch without users ends with its connection.
func (o *Lookout) End() {
	ws := o.link.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range o.Watches {
		w.lookouts = slices.DeleteFunc(w.lookouts, func(x *Lookout) bool { return x == o })
	}
}
