package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A server can carry out a creation long after its reply was lost: a server that was stopped may find the request on one connection
// and the return of the session on another. The znode belongs to a live session, and would block the queue until that ends. So the
// client lists the parent whenever the session reaches a server, and ever more rarely after that, and deletes such znodes.

// lateCreation is a creation that may still be carried out.
type lateCreation struct {
	sess   *zkconn.Session
	parent string
	guid   string // as it stands in node names
	until  time.Time
}

// lateCreations are the creations of a client that may be carried out late.
type lateCreations struct {
	engine *engine
	wake   chan struct{} // of capacity 1: there is a reason to look now

	mu      strict.Mutex[strict.LateCreations]
	all     []lateCreation
	looking bool
}

// remove deletes, in the background, the node of a creation with a guid, now and when the server carries out the creation.
func (l *lateCreations) remove(sess *zkconn.Session, parent, guid string) {
	defer l.reopened()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, lateCreation{sess, parent, guid, time.Now().Add(sess.Times().Late)})
	if !l.looking {
		l.looking = l.engine.tasks.Go(l.run)
	}
}

// reopened has the client look now.
func (l *lateCreations) reopened() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run looks, until no creation of the present session can come any more.
func (l *lateCreations) run(ctx context.Context) {
	t := l.engine.link.Times()
	for pause := t.Look; ; {
		select {
		case <-l.wake:
			pause = t.Look
		case <-time.After(pause):
			pause = min(2*pause, t.MaxLook)
		case <-ctx.Done():
			return
		}
		sess, now := l.engine.link.Session(), time.Now()
		l.mu.Lock()
		l.all = slices.DeleteFunc(l.all, func(one lateCreation) bool { return sess != nil && one.sess != sess || now.After(one.until) })
		l.looking = len(l.all) > 0
		all := slices.Clone(l.all)
		l.mu.Unlock()
		if len(all) == 0 {
			return
		}
		l.look(ctx, all)
	}
}

// expects reports whether a creation may still be carried out below a parent.
func (l *lateCreations) expects(parent string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(one lateCreation) bool { return one.parent == parent })
}

// found deletes the node of a creation. No other node comes of that creation.
func (l *lateCreations) found(one lateCreation, path string) {
	l.engine.countChild(path) // before the deletion, which may leave the parent empty
	l.mu.Lock()
	l.all = slices.DeleteFunc(l.all, func(other lateCreation) bool { return other == one })
	l.mu.Unlock()
	l.engine.removeLater(one.sess, path)
}

// look lists the parents of creations, and deletes what has come there. The sync makes the lists show what was created before.
func (l *lateCreations) look(ctx context.Context, all []lateCreation) {
	link := l.engine.link
	if link.Wire() == nil || link.Sync(ctx, "/") != nil {
		return // the next connection looks
	}
	listed := make(map[string][]string)
	for _, one := range all {
		if listed[one.parent] == nil {
			list, err := link.List(ctx, one.parent)
			if err != nil && ctx.Err() == nil && link.Wire() != nil && !errors.Is(err, zk.ErrNoNode) {
				l.engine.host.Logger().Error("cannot look for nodes to delete", "path", one.parent, "error", err)
			}
			listed[one.parent] = append(list.Names, "") // not nil
		}
		for _, name := range listed[one.parent] {
			if strings.Contains(name, one.guid) {
				l.found(one, one.parent+"/"+name)
			}
		}
	}
}
