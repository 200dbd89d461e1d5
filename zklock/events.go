package zklock

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// What the connection reports, and which of holdfast's events users see of it:
//
//	calls may be made: a session was established, or resumed  ->  Ready
//	the connection is lost                                    ->  Disconnected; locks live on until their deadline
//	the lease of the session is over, or the servers end it   ->  Lost (ErrSessionExpired) for each lock held
//	the own node has gone: see Fired                          ->  Lost (ErrBroken, ErrReclaimed) for its lock

// reopened is called by the connection when calls may be made in a session.
func (e *engine) reopened(sess *zkconn.Session) {
	e.heartbeat.reopened(sess)
	e.late.reopened()
}

// errUnwatched is all that is known when go-zookeeper has dropped a watch.
var errUnwatched = errors.New("the watch is gone")

// Fired implements [zkconn.Owner].
func (o *ownNode) Fired(why zk.EventType) {
	switch why {
	case zk.EventNodeDeleted:
		o.finish(o.deleted())
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
		o.set()
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
