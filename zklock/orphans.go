package zklock

import (
	"context"
	"errors"
	slashpath "path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A server can carry out a creation long after its reply was lost: a server that was stopped may find the request on one connection
// and the return of the session on another. A server can also refuse a deletion. Such a node belongs to a live session, and no call
// deletes it. So the client lists the parent whenever the session reaches a server, and once per session timeout, and deletes the node.

// orphan is a node that no call deletes. It may not exist yet.
type orphan struct {
	sess   *zkconn.Session
	parent string
	guid   string    // as it stands in the name of the node; the whole name if it is known
	until  time.Time // the server may create the node; zero if the whole name is known
	next   time.Time // of the next try, after a refusal
}

// orphans are those of a client.
type orphans struct {
	engine *engine
	wake   chan struct{} // of capacity 1: there is a reason to look now

	mu  strict.Mutex[strict.Orphans]
	all []*orphan
}

// add has a node deleted in the background: now, or when the server creates it.
func (o *orphans) add(sess *zkconn.Session, parent, guid string, until time.Time) {
	o.mu.Lock()
	o.all = append(o.all, &orphan{sess: sess, parent: parent, guid: guid, until: until})
	o.mu.Unlock()
	o.look()
}

// look has the client look now.
func (o *orphans) look() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run looks until the client closes.
func (o *orphans) run(ctx context.Context) {
	for ctx.Err() == nil {
		o.deleteAll(ctx)
		select {
		case <-o.wake:
		case <-time.After(o.engine.link.Times().Session):
		case <-ctx.Done():
		}
	}
}

// expects reports whether there may be an orphan below a parent.
func (o *orphans) expects(parent string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.all, func(one *orphan) bool { return one.parent == parent })
}

// keep forgets the orphans for which keep returns false, and returns the others.
func (o *orphans) keep(keep func(*orphan) bool) []*orphan {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = slices.DeleteFunc(o.all, func(one *orphan) bool { return !keep(one) })
	return slices.Clone(o.all)
}

// deleteAll deletes the orphans that exist. The sync makes the lists show what was created before.
func (o *orphans) deleteAll(ctx context.Context) {
	link, now := o.engine.link, time.Now()
	all := o.keep(func(one *orphan) bool { // the session is read under the lock: add may come with the next one
		sess := link.Session()
		return (sess == nil || one.sess == sess) && (one.until.IsZero() || now.Before(one.until))
	})
	all = slices.DeleteFunc(all, func(one *orphan) bool { return now.Before(one.next) })
	if len(all) == 0 || link.Wire() == nil || link.Sync(ctx, "/") != nil {
		return // the next connection looks
	}
	listed := make(map[string]zkconn.Listing)
	all = slices.DeleteFunc(all, func(one *orphan) bool {
		if known := one.until.IsZero(); known || ctx.Err() != nil {
			return !known
		}
		if _, known := listed[one.parent]; !known {
			listed[one.parent], _ = link.List(ctx, one.parent)
		}
		names := listed[one.parent].Names
		i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, one.guid) })
		if i >= 0 {
			one.guid, one.until = names[i], time.Time{}
			o.engine.countChild(one.parent + "/" + one.guid)
		}
		return i < 0
	})
	atOnce(ctx, slices.Values(all), func(one *orphan) {
		path := one.parent + "/" + one.guid
		switch err := link.Delete(ctx, one.sess, path); {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			o.keep(func(other *orphan) bool { return other != one })
			o.engine.tidy(one.parent)
		case ctx.Err() == nil && !errors.Is(err, driver.ErrDisconnected):
			if one.next.IsZero() {
				o.engine.host.Logger().Error("cannot delete own node", "path", path, "error", err)
			}
			one.next = now.Add(link.Times().Session / 2) // an operator may give the permission
		}
	})
}

// remove deletes a node of session sess, and returns when the node is gone, or the session is over. missing says that the node was gone
// at the first try. After an error the background tries again. again is as for [zkconn.Link.Retry].
func (e *engine) remove(
	ctx context.Context, again func(context.Context, error, <-chan struct{}) error, sess *zkconn.Session, path string,
) (missing bool, err error) {
	sent := false
	err = e.link.Retry(ctx, again, func(now *zkconn.Session) error {
		if now != sess {
			return nil
		}
		err := e.link.Delete(ctx, sess, path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			missing = !sent
			return nil
		case err != nil && ctx.Err() != nil:
			return zkconn.Disconnected(ctx)
		case zkconn.UnknownOutcome(err):
			sent = true // this request may have deleted it
		}
		return err
	})
	if err == nil {
		e.tidy(slashpath.Dir(path))
		return missing, nil
	}
	e.orphans.add(sess, slashpath.Dir(path), slashpath.Base(path), time.Time{})
	return missing, err
}
