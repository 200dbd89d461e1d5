package zklock

import (
	"context"
	"errors"
	"fmt"
	slashpath "path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// ownNode is the watch on a node of this client, of a contender or a hold. It checks that this client created the node, and
// reports the node's deletion.
//
// It acts on events at once and in their order, so no contender is granted the lock after the event that its node is gone. If the
// node was written to and the next read does not find it, the end of a hold waits for a list of the queue: see whyMissing.
type ownNode struct {
	engine *engine
	sess   *zkconn.Session
	path   string
	owner  string
	known  chan struct{} // closed when the node has been read and czxid is known
	gone   chan struct{} // closed when the node is known to be gone; cause says why

	mu      strict.Mutex[strict.OwnNode]
	czxid   int64 // 0: not known yet
	cause   error
	lost    func(error)              // set when the contender has become a hold
	asked   func()                   // the same
	wanted  bool                     // another client asks for the lock
	written bool                     // an event has told that the node was written to, and the node has not been read since
	timer   interface{ Stop() bool } // of the first read
	watch   *zkconn.Watch            // nil before the first read
	off     bool                     // the client is deleting the node itself
}

// watchDelay postpones the read of the own node when that was the first in line at once. A server that serves only locks would
// spend a quarter of its time on the read, and on the event that its watch causes at the release. The price: the holder learns
// that much later of a break in these first milliseconds.
const watchDelay = 5 * time.Millisecond

// begin begins to watch, or does so again.
func (o *ownNode) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.off {
		o.watch = o.engine.link.WatchOwn(o.path, o)
	}
}

// knownCzxid returns the czxid of the node; 0 if it is not known yet.
func (o *ownNode) knownCzxid() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.czxid
}

// doubt reports whether the node may be gone without an event: it was written to and not read since, or it is not watched on the
// present connection. A node that is not watched at all yet was there a moment ago: see watchDelay.
func (o *ownNode) doubt() bool {
	o.mu.Lock()
	w := o.watch
	o.mu.Unlock()
	return w != nil && !o.engine.link.Watching(w)
}

// Read implements [zkconn.Owner]. The node must have been created by this session, by the request that succeeded.
func (o *ownNode) Read(node zkconn.Znode) {
	o.mu.Lock()
	replaced := o.czxid != 0 && node.Stat.Czxid != o.czxid
	o.czxid, o.written = node.Stat.Czxid, false
	o.mu.Unlock()
	switch {
	case node.Stat.EphemeralOwner != o.sess.ID:
		o.finish(driver.ErrSessionExpired)
	case replaced:
		o.finish(driver.ErrBroken)
	case isWish(node.Data):
		o.wish()
	}
	// Only now: a contender that waits for this must find the cause of a mismatch.
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.known:
	default:
		close(o.known)
	}
}

// Fired implements [zkconn.Owner].
func (o *ownNode) Fired(why zk.EventType, err error) {
	ctx, link := o.engine.tasks.Context(), o.engine.link
	switch {
	case why == zk.EventNodeDeleted && err == nil: // an event: the reader of the connection must not wait for a list
		o.finish(driver.ErrBroken)
	case why == zk.EventNodeDeleted:
		o.finish(o.whyMissing(ctx))
	case why == zk.EventNodeDataChanged:
		// A client that reclaims the node writes to it in the transaction that deletes it, so the next read finds no node.
		// Otherwise another client asks for the lock. Until that is known, the contender is granted nothing: see prove.
		o.mu.Lock()
		o.written = true
		o.mu.Unlock()
		o.begin()
	case link.Session() != o.sess:
		o.finish(driver.ErrSessionExpired)
	case ctx.Err() == nil:
		o.engine.host.Logger().Warn("own node cannot be watched", "path", o.path, "error", err)
		if errors.Is(err, driver.ErrDenied) || o.knownCzxid() == 0 { // no event, or nothing, would tell whether it is the right node
			o.finish(err)
		} // else heartbeats look for it
	}
}

// whyMissing returns why a request did not find the node. A node that was written to, and was not read since, was reclaimed if the queue
// has a node that reclaims under its owner name. Otherwise another client has asked for the lock and then broken it.
func (o *ownNode) whyMissing(ctx context.Context) error {
	o.mu.Lock()
	written := o.written
	o.mu.Unlock()
	var queue zkconn.Listing
	if written {
		queue, _ = o.engine.link.List(ctx, slashpath.Dir(o.path))
	}
	switch {
	case o.engine.link.Session() != o.sess: // it has gone with its session
		return driver.ErrSessionExpired
	case slices.ContainsFunc(queue.Names, func(name string) bool { return reclaims(name, o.owner) }):
		return driver.ErrReclaimed
	}
	return driver.ErrBroken
}

// wish notes that another client asks for the lock.
func (o *ownNode) wish() {
	o.mu.Lock()
	o.wanted = true
	asked := o.asked
	o.mu.Unlock()
	if asked != nil {
		asked()
	}
}

// finish ends the contender or the hold. If the node is still there, because its client may not read it, the contender or the release
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
		cause = fmt.Errorf("%w: %w", driver.ErrBroken, cause) // by the operator that took the permission away
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
	w := o.watch
	if o.timer != nil {
		o.timer.Stop()
	}
	o.mu.Unlock()
	if w != nil {
		o.engine.link.Disown(w)
	}
}
