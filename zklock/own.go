package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// own is the watch on a node of this client's: a place in the queue, or a hold.
// It learns when somebody deletes the node, and that the node is the one it is
// meant to be.
type own struct {
	b    *backend
	sess *session
	path string
	name string        // of the owner
	seen chan struct{} // closed when the node has been read and czxid is known
	gone chan struct{} // closed when the node is known to be gone; cause says why

	mu    sync.Mutex
	czxid int64 // 0: not known yet
	cause error
	lose  func(error)              // set when the place has become a hold
	timer interface{ Stop() bool } // of the first read
	watch *watch                   // nil before that
	wire  *wire                    // the connection on which it was set
	off   bool                     // the client is deleting the node itself

	written bool // somebody wrote to the node, and it has not been seen since
}

// watchDelay is how long the read of the own node is put off when it was the
// first in line at once. That read proves nothing that the reply to the creation
// has not proved, and nobody waits for it; but a server that does nothing but
// locks spends a quarter of its time on it and on the event that its watch
// causes at the release. A hold that is over by then sends none. The price: the
// holder learns that much later of a break in these first milliseconds.
const watchDelay = 5 * time.Millisecond

// watchOwn makes a watch; set and setLater begin with it. name is that of the
// owner. czxid is 0 if it is not known: then somebody waits for the node to be
// seen.
func (b *backend) watchOwn(sess *session, path, name string, czxid int64) *own {
	return &own{b: b, sess: sess, path: path, name: name, czxid: czxid, seen: make(chan struct{}), gone: make(chan struct{})}
}

// setLater is set after the delay.
func (o *own) setLater() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = o.b.host.AfterFunc(watchDelay, o.set)
}

// set begins to watch, or does so again.
func (o *own) set() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.off {
		o.wire = o.b.link.present()
		o.watch = o.b.link.watches.onOwn(o.b.background, o)
	}
}

// errUnwatched is all that is known when go-zookeeper has dropped a watch.
var errUnwatched = errors.New("the watch is gone")

// fired is called, on a goroutine of its own, when the watch has fired or could
// not be set.
func (o *own) fired(why zk.EventType) {
	switch why {
	case zk.EventNodeDeleted:
		o.finish(o.deleted())
	case zk.EventNodeDataChanged:
		// Whoever reclaims a node writes to it in the same transaction that
		// deletes it, so that its client can tell: when it looks again, the
		// node is gone. If it is there, somebody wrote to it for reasons of
		// their own, and verify takes the mark back.
		o.mu.Lock()
		o.written = true
		o.mu.Unlock()
		o.set()
	default:
		if !o.b.link.same(o.sess) {
			o.finish(holdfast.ErrSessionExpired)
			return
		}
		if o.b.background.Err() == nil {
			o.mu.Lock()
			w := o.watch
			o.mu.Unlock()
			err := w.failure()
			if err == nil {
				err = errUnwatched
			}
			o.b.host.Logger().Warn("own node cannot be watched", "path", o.path, "error", err)
		}
	}
}

// deleted returns why the node was deleted. Whether it was written to before
// cannot be told if the client was not watching, because it had not begun to or
// had lost its connection; then it is looked up whether somebody of the same
// name stands there now. The lease bounds what may come of asking.
func (o *own) deleted() error {
	o.mu.Lock()
	written, wire := o.written, o.wire
	o.mu.Unlock()
	if written {
		return holdfast.ErrReclaimed
	}
	select {
	case <-o.seen:
		if wire == o.b.link.present() {
			return holdfast.ErrBroken
		}
	default:
	}
	ctx, cancel := context.WithTimeout(o.b.background, o.sess.timeout/4)
	defer cancel()
	parent := dir(o.path)
	names, err := o.b.link.children(ctx, parent)
	if err != nil {
		return holdfast.ErrBroken
	}
	var line []contender
	for _, name := range names {
		if c, ok := parseContender(name); ok {
			line = append(line, c)
		}
	}
	nodes, _ := o.b.readAll(ctx, parent, line)
	for _, node := range nodes {
		if owner, _ := decodeData(node.data); owner == o.name && node.stat.EphemeralOwner != o.sess.id {
			return holdfast.ErrReclaimed
		}
	}
	return holdfast.ErrBroken
}

// verify compares the node with what it is meant to be, once it has been read:
// it must have been created by this session, by the request that succeeded.
func (o *own) verify(w *watch) {
	if w.err != nil {
		return
	}
	o.mu.Lock()
	mismatch := w.node.stat.EphemeralOwner != o.sess.id || (o.czxid != 0 && w.node.stat.Czxid != o.czxid)
	o.czxid = w.node.stat.Czxid
	o.written = false
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
	lose := o.lose
	close(o.gone)
	o.mu.Unlock()
	if lose != nil {
		lose(cause)
	}
}

// hold makes lose be told from now on; false if the node is gone already.
func (o *own) hold(lose func(error)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause != nil {
		return false
	}
	o.lose = lose
	return true
}

// stop is called before the node is deleted by its own client.
func (o *own) stop() {
	o.mu.Lock()
	o.off = true
	o.lose = nil
	w := o.watch
	if o.timer != nil {
		o.timer.Stop()
	}
	o.mu.Unlock()
	if w != nil {
		o.b.link.watches.forget(w)
	}
}
