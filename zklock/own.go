package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// own is the watch on a node of this client's, of a contender or a hold.
// It learns when somebody deletes the node, and that the node is the one it is
// meant to be.
//
// It acts on what it hears at once and in the order in which it hears it: it asks nobody
// before it says that the node is gone, or why. So no contender is granted the lock after
// the word that its node is gone, and the end of a hold waits for nothing.
type own struct {
	engine *engine
	sess   *session
	path   string
	seen   chan struct{} // closed when the node has been read and czxid is known
	gone   chan struct{} // closed when the node is known to be gone; cause says why

	mu    sync.Mutex
	czxid int64 // 0: not known yet
	cause error
	lost  func(error)              // set when the contender has become a hold
	timer interface{ Stop() bool } // of the first read
	watch *watch                   // nil before that
	wire  *wire                    // the connection on which it was set
	off   bool                     // the client is deleting the node itself

	writes int // to the node by somebody, as far as has been heard
	after  int // how many of them the watch was set after
	found  int // how many of them the node has survived
}

// watchDelay is how long the read of the own node is put off when it was the
// first in line at once. That read proves nothing that the reply to the creation
// has not proved, and nobody waits for it; but a server that does nothing but
// locks spends a quarter of its time on it and on the event that its watch
// causes at the release. A hold that is over by then sends none. The price: the
// holder learns that much later of a break in these first milliseconds.
const watchDelay = 5 * time.Millisecond

// watchOwn makes a watch; set and setLater begin with it. czxid is 0 if it is not
// known: then somebody waits for the node to be seen.
func (e *engine) watchOwn(sess *session, path string, czxid int64) *own {
	return &own{engine: e, sess: sess, path: path, czxid: czxid, seen: make(chan struct{}), gone: make(chan struct{})}
}

// setLater is set after the delay.
func (o *own) setLater() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = o.engine.host.AfterFunc(watchDelay, o.set)
}

// set begins to watch, or does so again.
func (o *own) set() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.off {
		o.wire = o.engine.link.present()
		o.after = o.writes
		o.watch = o.engine.link.watches.onOwn(o.engine.tasks.Context(), o.path, o)
	}
}

// errUnwatched is all that is known when go-zookeeper has dropped a watch.
var errUnwatched = errors.New("the watch is gone")

// fired implements [owner].
func (o *own) fired(why zk.EventType) {
	switch why {
	case zk.EventNodeDeleted:
		o.finish(o.deleted())
	case zk.EventNodeDataChanged:
		// Whoever reclaims a node writes to it in the same transaction that
		// deletes it, so that its client can tell: when it looks again, the
		// node is gone. If it is there, somebody wrote to it for reasons of
		// their own. Until that is known, nothing is granted: see prove.
		o.mu.Lock()
		o.writes++
		o.mu.Unlock()
		o.set()
	default:
		if !o.engine.link.same(o.sess) {
			o.finish(holdfast.ErrSessionExpired)
			return
		}
		if o.engine.tasks.Context().Err() == nil {
			o.mu.Lock()
			w := o.watch
			o.mu.Unlock()
			err := w.failure()
			if err == nil {
				err = errUnwatched
			}
			o.engine.host.Logger().Warn("own node cannot be watched", "path", o.path, "error", err)
		}
	}
}

// missing returns why a node that was not found is gone, as far as is known.
// That it was reclaimed shows in the write that came before; whoever was not
// watching just then, as it had not begun to or was cut off, has not seen that,
// and knows only that somebody has deleted the node. A node that is missing in
// another session says nothing: it has gone with its own.
func (o *own) missing() error {
	o.mu.Lock()
	written := o.writes > o.found
	o.mu.Unlock()
	switch {
	case !o.engine.link.same(o.sess):
		return holdfast.ErrSessionExpired
	case written:
		return holdfast.ErrReclaimed
	}
	return holdfast.ErrBroken
}

// deleted is missing for a node whose watch has reported its deletion. If that was an
// event, and not that the read which was to set the watch found no node, the node was
// there after all writes before.
func (o *own) deleted() error {
	o.mu.Lock()
	if !errors.Is(o.watch.failure(), zk.ErrNoNode) {
		o.found = max(o.found, o.after)
	}
	o.mu.Unlock()
	return o.missing()
}

// doubtful reports whether the node may be gone for all that this client has
// heard: it was written to, or its watch is that of a former connection and may not
// have been set again. writes is for survived.
func (o *own) doubtful() (writes int, yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes, o.writes > o.found || (o.wire != nil && o.wire != o.engine.link.present())
}

// survived takes in that the node was there after that many writes.
func (o *own) survived(writes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found = max(o.found, writes)
}

// settle waits until it is known whether the node is watched: by then whoever has
// deleted it has been heard of, or will be before anything that happens later.
func (o *own) settle(ctx context.Context) {
	o.mu.Lock()
	later := o.watch == nil
	o.mu.Unlock()
	if later {
		o.set() // it was first in line a moment ago, and is not any more
	}
	o.mu.Lock()
	w := o.watch
	o.mu.Unlock()
	select {
	case <-o.seen:
	case <-o.gone:
	case <-w.gone: // it cannot be read, or has just been written to
	case <-ctx.Done():
	}
}

// read implements [owner]. It compares the node with what it is meant to be: it must have
// been created by this session, by the request that succeeded.
func (o *own) read(w *watch) {
	if w.err != nil {
		return
	}
	o.mu.Lock()
	mismatch := w.node.stat.EphemeralOwner != o.sess.id || (o.czxid != 0 && w.node.stat.Czxid != o.czxid)
	o.czxid = w.node.stat.Czxid
	if w == o.watch {
		o.found = max(o.found, o.after)
	}
	o.mu.Unlock()
	if mismatch {
		o.finish(holdfast.ErrSessionExpired)
	}
	// Only now: whoever waits for this must find the node to be no longer its own.
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.seen:
	default:
		close(o.seen)
	}
}

func (o *own) finish(cause error) {
	o.mu.Lock()
	if o.cause != nil {
		o.mu.Unlock()
		return
	}
	o.cause = cause
	lost := o.lost
	close(o.gone)
	o.mu.Unlock()
	if lost != nil {
		lost(cause)
	}
}

// hold has lost called from now on; false if the node is gone already.
func (o *own) hold(lost func(error)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause != nil {
		return false
	}
	o.lost = lost
	return true
}

// stop is called before the node is deleted by its own client.
func (o *own) stop() {
	o.mu.Lock()
	o.off = true
	o.lost = nil
	w := o.watch
	if o.timer != nil {
		o.timer.Stop()
	}
	o.mu.Unlock()
	if w != nil {
		o.engine.link.watches.disown(w)
	}
}
