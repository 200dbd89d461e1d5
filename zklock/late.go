package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A creation whose reply was lost may still be carried out long after, even when
// it was repeated elsewhere, and the lock that came of it is released. ZooKeeper
// refuses what arrives over a server that the session has left. But a server that
// was stopped finds, when it goes on, the request on one connection and the
// client's return to it on another, and takes both: then the session is there again
// when the request comes to the leader. The node that is made belongs to a
// session that lives, and nobody knows of it: the queue would stand still until the
// session ends. So the client looks for it, whenever the session has come to a server,
// and every so often. Where the session is not, the creation is refused, and the
// connection ends; the next one looks.

// creation is one that may still be carried out.
type creation struct {
	sess   *zkconn.Session
	parent string
	guid   string // as it stands in node names
	keep   string // the node with this guid that is wanted; "": none is, or not any longer
	until  time.Time
}

// lateCreations are the creations of a client that may be carried out late.
type lateCreations struct {
	engine *engine

	mu        strict.Mutex[strict.LateCreations]
	all       []creation
	pause     time.Duration            // until the next look
	timer     interface{ Stop() bool } // of that
	toLookFor map[creation]struct{}    // when the look under way is over
	looking   bool
	stopped   bool
}

func newLateCreations(e *engine) *lateCreations {
	return &lateCreations{engine: e, toLookFor: make(map[creation]struct{})}
}

// remove deletes, in the background, what has come of creations with a guid, and
// what will.
func (l *lateCreations) remove(sess *zkconn.Session, parent, guid string) {
	one := l.expect(sess, parent, guid, "")
	if l.engine.link.IsOpen() { // else see reopened
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lookForLocked(one)
	}
}

// expect has nodes with a guid, other than keep, deleted when they come.
func (l *lateCreations) expect(sess *zkconn.Session, parent, guid, keep string) creation {
	t := sess.Times()
	one := creation{sess: sess, parent: parent, guid: guid, keep: keep, until: time.Now().Add(t.Late)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, one)
	l.armLocked(t.Look)
	return one
}

// keepNot is called when a node is not wanted any more. Where the counter is at its end, a late creation gets the very name of that
// node, and is to be deleted. The node of a hold must be gone by then: if it were deleted here, its release would find it missing.
func (l *lateCreations) keepNot(sess *zkconn.Session, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, one := range l.all {
		if one.sess == sess && one.keep == base(path) && one.parent == dir(path) {
			l.all[i].keep = ""
		}
	}
}

// reopened is called when the session has come to a server.
func (l *lateCreations) reopened() {
	if sess := l.lookForAll(); sess != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.armLocked(sess.Times().Look)
	}
}

// armLocked has the next look made after a pause.
func (l *lateCreations) armLocked(pause time.Duration) {
	if l.stopped {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.pause = pause
	l.timer = l.engine.host.AfterFunc(pause, l.again)
}

// again looks once more. While the connection is down there is nothing to be
// seen, and when it is up again, it begins anew.
func (l *lateCreations) again() {
	if sess := l.lookForAll(); sess != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.armLocked(min(2*l.pause, sess.Times().MaxLook))
	}
}

// stop is called when the client closes, and its session ends.
func (l *lateCreations) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// lookForAll looks, in the background, for the late creations of the present session, and
// returns that; nil if there can be none, or the connection is down.
func (l *lateCreations) lookForAll() *zkconn.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	sess := l.engine.link.Session()
	if sess == nil || !l.engine.link.IsOpen() {
		return nil
	}
	some := l.expectedLocked(sess, time.Now())
	if len(some) == 0 {
		return nil
	}
	l.lookForLocked(some...)
	return sess
}

// expectedLocked returns those that may still come in a session, and forgets all others.
func (l *lateCreations) expectedLocked(sess *zkconn.Session, now time.Time) []creation {
	l.all = slices.DeleteFunc(l.all, func(one creation) bool { return one.sess != sess || now.After(one.until) })
	return l.all
}

// lookForLocked has some looked for, in the background: now, or together with others, when the look that
// is under way is over. A client may have given up thousands of calls.
func (l *lateCreations) lookForLocked(some ...creation) {
	for _, one := range some {
		l.toLookFor[one] = struct{}{}
	}
	if l.looking {
		return
	}
	l.looking = l.engine.tasks.Go(func(ctx context.Context) {
		for some := l.next(); len(some) > 0; some = l.next() {
			l.look(ctx, some)
		}
	})
}

// next returns, by their parents, the creations of one session that are to be looked for by now. If there are none, the
// task ends.
func (l *lateCreations) next() map[string][]creation {
	l.mu.Lock()
	defer l.mu.Unlock()
	byParent := make(map[string][]creation)
	var sess *zkconn.Session
	for one := range l.toLookFor {
		if sess == nil {
			sess = one.sess
		}
		if one.sess == sess {
			byParent[one.parent] = append(byParent[one.parent], one)
			delete(l.toLookFor, one)
		}
	}
	l.looking = len(byParent) > 0
	return byParent
}

// maxLists is how many lists a look has under way at a time.
const maxLists = 16

// look deletes what there is below some parents. The sync, which goes the way of a
// write, makes the lists that follow it see what was created before.
func (l *lateCreations) look(ctx context.Context, byParent map[string][]creation) {
	link := l.engine.link
	slots := make(chan struct{}, maxLists)
	var looks sync.WaitGroup
	var synced *zkconn.Wire // the connection on which that was done
	for parent, some := range byParent {
		sess := some[0].sess
		err := link.Retry(ctx, nil, func(*zkconn.Session) error {
			if w := link.Wire(); w == nil || w != synced {
				if err := link.Sync(ctx, "/"); err != nil {
					return err
				}
				synced = w
			}
			return nil
		})
		if err != nil || !link.InSession(sess) {
			break // the client closes, or they have gone with their session
		}
		slots <- struct{}{}
		looks.Go(func() {
			defer func() { <-slots }()
			l.lookBelow(ctx, sess, parent, some)
		})
	}
	looks.Wait()
}

// lookBelow deletes what there is below one parent.
func (l *lateCreations) lookBelow(ctx context.Context, sess *zkconn.Session, parent string, some []creation) {
	link := l.engine.link
	var names []string
	err := link.Retry(ctx, nil, func(*zkconn.Session) (err error) {
		if link.InSession(sess) {
			names, err = link.Children(ctx, parent)
		}
		return err
	})
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, zk.ErrNoNode) {
			l.engine.host.Logger().Error("cannot look for nodes to delete", "path", parent, "error", err)
		}
		return
	}
	for _, name := range names {
		for _, one := range some {
			if strings.Contains(name, one.guid) && name != one.keep {
				l.engine.removeLater(sess, parent+"/"+name)
			}
		}
	}
}
