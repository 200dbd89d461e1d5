package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// ownNode is the watch on a node of this client's, of a contender or a hold.
// It learns when somebody deletes the node, and that the node is the one it is
// meant to be.
//
// It acts on what it hears at once and in the order in which it hears it, so no contender is
// granted the lock after the word that its node is gone. There is one exception: if the node was
// written to before, the end of a hold may wait for one more list of the queue. See whyGone.
type ownNode struct {
	engine *engine
	sess   *zkconn.Session
	path   string
	owner  string
	known  chan struct{} // closed when the node has been read and czxid is known
	gone   chan struct{} // closed when the node is known to be gone; cause says why

	mu     strict.Mutex[strict.OwnNode]
	czxid  int64 // 0: not known yet
	cause  error
	lost   func(error)              // set when the contender has become a hold
	asked  func()                   // the same
	wanted bool                     // somebody asks the client to let the node go
	timer  interface{ Stop() bool } // of the first read
	view   *view                    // nil before that
	off    bool                     // the client is deleting the node itself

	unseen *written // the last write to the node that was heard of; nil if the node has been seen since
	mine   span     // of the node's versions that writes of this client's have ended, or may have
}

// view is a watch on the node, and what was known when it was set.
type view struct {
	watch  *zkconn.Watch
	on     *zkconn.Wire // the connection; nil if there was none
	unseen *written     // ownNode.unseen, as it was then
}

// written is a write to the node, by somebody.
type written struct {
	reported *zkconn.Watch // by which watch
	names    *siblings     // in the queue, after it; nil if it seemed to be this client's own
}

// watchDelay is how long the read of the own node is put off when it was the
// first in line at once. That read proves nothing that the reply to the creation
// has not proved, and nobody waits for it; but a server that does nothing but
// locks spends a quarter of its time on it and on the event that its watch
// causes at the release. A hold that is over by then sends none. The price: the
// holder learns that much later of a break in these first milliseconds.
const watchDelay = 5 * time.Millisecond

// newOwnNode makes an ownNode, which watch or watchLater must then begin to watch. czxid is 0 if it is not
// known: then somebody waits for the node to be seen.
func (e *engine) newOwnNode(sess *zkconn.Session, path string, czxid int64, owner string) *ownNode {
	return &ownNode{
		engine: e, sess: sess, path: path, czxid: czxid, owner: owner,
		known: make(chan struct{}), gone: make(chan struct{}),
	}
}

// watchLater is watch after watchDelay.
func (o *ownNode) watchLater() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = o.engine.host.AfterFunc(watchDelay, o.watch)
}

// watch begins to watch, or does so again.
func (o *ownNode) watch() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.off {
		v := &view{on: o.engine.link.Wire(), unseen: o.unseen}
		v.watch = o.engine.link.WatchOwn(o.engine.tasks.Context(), o.path, o)
		o.view = v
	}
}

// watching is the present watch, or nil.
func (o *ownNode) watching() *zkconn.Watch {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.view == nil {
		return nil
	}
	return o.view.watch
}

// look asks once more for a node that the server has failed to read. Heartbeats look for it from then on.
func (o *ownNode) look() {
	o.engine.tasks.Go(func(ctx context.Context) {
		var stat *zk.Stat
		err := o.engine.link.Retry(ctx, nil, func(*zkconn.Session) (err error) {
			stat, err = o.engine.link.Stat(ctx, o.path)
			return err
		})
		switch {
		case err == nil:
			o.identify(zkconn.Znode{Stat: stat})
		case errors.Is(err, zk.ErrNoNode):
			o.finish(o.whyGone(ctx))
		case errors.Is(err, driver.ErrDenied):
			o.finish(err)
		case ctx.Err() == nil && o.knownCzxid() == 0:
			o.finish(errUnread)
		}
	})
}

// errUnread is all that is known of a node that the server has failed to read, twice, if only the node itself can tell whose it is.
var errUnread = errors.New("the own node cannot be read")

// errUnwatched is all that is known when go-zookeeper has dropped a watch.
var errUnwatched = errors.New("the watch is gone")

// knownCzxid returns the czxid of the node; 0 if it is not known yet.
func (o *ownNode) knownCzxid() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.czxid
}

// doubt reports whether the node may be gone for all that this client has heard: it was written to and not seen since, or it is
// not watched on the present connection. See seen. A node that is not watched at all yet was there a moment ago: see watchLater.
func (o *ownNode) doubt() (unseen *written, yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unseen, o.unseen != nil || o.view != nil && !o.view.holds(o.engine.link.Wire())
}

// holds reports whether a view tells what happens to the node now: its watch has been asked for on the present connection, and has
// not been refused.
func (v *view) holds(present *zkconn.Wire) bool {
	return v.on != nil && v.on == present && v.watch.Failure() == nil
}

// seen takes in that the node was there after a write; nil for none.
func (o *ownNode) seen(after *written) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seenLocked(after)
}

func (o *ownNode) seenLocked(after *written) {
	if o.unseen == after {
		o.unseen = nil
	}
}

// settle waits until it is known whether the node is watched: by then whoever has
// deleted it has been heard of, or will be before anything that happens later.
func (o *ownNode) settle(ctx context.Context) {
	o.mu.Lock()
	later := o.view == nil
	o.mu.Unlock()
	if later {
		o.watch() // it was first in line a moment ago, and is not any more
	}
	w := o.watching()
	select {
	case <-o.known:
	case <-o.gone:
	case <-w.Gone: // it cannot be read, or has just been written to
	case <-ctx.Done():
	}
}

// Read implements [zkconn.Owner]. The node must have been created by this session, by the request that
// succeeded.
func (o *ownNode) Read(w *zkconn.Watch) {
	if w.Err != nil {
		return
	}
	o.mu.Lock()
	if v := o.view; v != nil && w == v.watch {
		o.seenLocked(v.unseen)
	}
	o.mu.Unlock()
	o.identify(w.Node)
}

// identify compares the node, as it is at the server, with what it is meant to be.
func (o *ownNode) identify(node zkconn.Znode) {
	o.mu.Lock()
	mismatch := node.Stat.EphemeralOwner != o.sess.ID || (o.czxid != 0 && node.Stat.Czxid != o.czxid)
	o.czxid = node.Stat.Czxid
	o.mu.Unlock()
	switch {
	case mismatch:
		o.finish(driver.ErrSessionExpired)
	case wished(node.Data, o.owner):
		o.wish()
	}
	// Only now: whoever waits for this must find the node to be no longer its own.
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.known:
	default:
		close(o.known)
	}
}

// Fired implements [zkconn.Owner].
func (o *ownNode) Fired(why zk.EventType) {
	switch why {
	case zk.EventNodeDeleted:
		o.finish(o.whyDeleted())
	case zk.EventNodeDataChanged:
		// Whoever reclaims a node writes to it in the same transaction that
		// deletes it, so that its client can tell: when it looks again, the
		// node is gone. If it is there, somebody asks for it, or wrote to it for
		// reasons of their own. Until that is known, nothing is granted: see prove.
		o.mu.Lock()
		o.unseen = &written{reported: o.view.watch}
		if !o.mine.has(o.view.watch) {
			o.unseen.names = o.list()
		}
		o.mu.Unlock()
		o.watch()
	default:
		if !o.engine.link.InSession(o.sess) {
			o.finish(driver.ErrSessionExpired)
			return
		}
		if o.engine.tasks.Context().Err() == nil {
			w := o.watching()
			err := w.Failure()
			if err == nil {
				err = errUnwatched
			}
			o.engine.host.Logger().Warn("own node cannot be watched", "path", o.path, "error", err)
			switch why := w.Refused(); {
			case errors.Is(why, driver.ErrDenied):
				o.finish(why) // it would not hear of what becomes of the node
			case why != nil:
				o.look()
			}
		}
	}
}

// wish notes that somebody asks for the node.
func (o *ownNode) wish() {
	o.mu.Lock()
	o.wanted = true
	asked := o.asked
	o.mu.Unlock()
	if asked != nil {
		asked()
	}
}

// finish ends whatever goes by the node. If that is there still, since its client only may not read it, whoever hears of this
// deletes it.
func (o *ownNode) finish(cause error) {
	o.mu.Lock()
	if o.cause != nil {
		o.mu.Unlock()
		return
	}
	o.cause = cause
	lost := o.lost
	close(o.gone)
	o.mu.Unlock()
	if lost == nil {
		return
	}
	if errors.Is(cause, driver.ErrDenied) {
		cause = fmt.Errorf("%w: %w", driver.ErrBroken, cause) // by whoever has taken the permission away
	}
	lost(cause)
}

// notify has lost and asked called from now on; false if the node is gone already.
func (o *ownNode) notify(lost func(error), asked func()) bool {
	o.mu.Lock()
	if o.cause != nil {
		o.mu.Unlock()
		return false
	}
	o.lost, o.asked = lost, asked
	wanted := o.wanted
	o.mu.Unlock()
	if wanted {
		asked()
	}
	return true
}

// stop is called before the node is deleted by its own client.
func (o *ownNode) stop() {
	o.mu.Lock()
	o.off = true
	o.lost, o.asked = nil, nil
	v := o.view
	if o.timer != nil {
		o.timer.Stop()
	}
	o.mu.Unlock()
	if v != nil {
		o.engine.link.Disown(v.watch)
	}
}
