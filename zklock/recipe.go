package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// The recipe is that of ZooKeeper's documentation ("ZooKeeper Recipes and
// Solutions", Locks): create an ephemeral sequential node, list its siblings;
// the lowest has the lock, and every other contender watches nodes before its own:
// see planFor. A guid in the name identifies the own node when the reply to its
// creation was lost.

// errStartOver is why an attempt at a grant has to begin again: something changed under
// way, and nobody is to blame.
var errStartOver = errors.New("start over")

// Acquire implements [driver.Driver].
func (e *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	parent, data := e.paths.lock(req.Key), encodeData(req.Owner, req.Data)
	if err := checkData(data); err != nil {
		return driver.Grant{}, err
	}
	c := &contender{engine: e, req: req, parent: parent, data: data}
	if !req.Wait && !req.Reclaim {
		var err error
		if c.bound, err = e.probe(ctx, parent, req); err != nil {
			return driver.Grant{}, err
		}
	}
	var grant driver.Grant
	granted := false
	defer func() {
		if !granted { // the caller's Retry may have panicked
			c.letGo()
		}
		e.leaveParents(parent, granted)
	}()
	for {
		err := e.link.Retry(ctx, req.Retry, func(sess *zkconn.Session) (err error) {
			c.enter(sess)
			grant, err = c.attempt(ctx)
			return err
		})
		switch {
		case err == nil:
			granted = true
			return grant, nil
		case !errors.Is(err, errStartOver):
			if e.outOfTime(ctx, err) && c.behind { // it was about to look again
				err = driver.Held(driver.Info{Key: req.Key, Held: true})
			}
			return driver.Grant{}, err
		}
	}
}

// attempt goes on from where the last attempt has ended. It returns a grant; errStartOver or a transient error if it is to be called again;
// or why the call has failed.
func (c *contender) attempt(ctx context.Context) (driver.Grant, error) {
	if err := c.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	if err := c.prove(ctx); err != nil {
		return driver.Grant{}, zkconn.AsDisconnected(ctx, err)
	}
	return c.grant(ctx)
}

// reach returns when nothing is known to be in the contender's way.
func (c *contender) reach(ctx context.Context) error {
	ahead, err := c.locate(ctx)
	if err != nil {
		return err
	}
	if err := c.engine.fits(c.req, ahead); err != nil {
		return err
	}
	if c.req.Reclaim && !c.reclaimed {
		removed, err := c.reclaim(ctx, ahead)
		if err != nil {
			return zkconn.AsDisconnected(ctx, err)
		}
		c.reclaimed = true
		if removed {
			return errStartOver
		}
	}
	blockers := c.blockers(ahead)
	c.behind = false
	switch {
	case len(blockers) > 0:
	case void(c.node): // and the nodes that came between are gone
		c.bound = 0 // a second miss must not keep it from the key
		if err := c.withdraw(ctx); err != nil {
			return err
		}
		return errStartOver
	default:
		return nil
	}
	if !c.req.Wait {
		return c.held(ctx, ahead[0])
	}
	c.req.Queued(len(blockers))
	c.tellMode(ahead)
	err = c.newWait(ahead).run(ctx)
	c.behind = err != nil
	return err
}

// locate makes sure that the contender has a node. It returns the nodes before it.
func (c *contender) locate(ctx context.Context) (ahead []entry, err error) {
	children, err := c.join(ctx)
	if err != nil {
		return nil, err
	}
	own := c.node
	if c.stage == doubled {
		own = "" // there may be another, which counts if it came before
	}
	line, err := c.engine.order(ctx, c.parent, children, own)
	if err != nil {
		return nil, zkconn.AsDisconnected(ctx, err)
	}
	ahead, found := c.find(line)
	if !found {
		return nil, c.vanished(ctx)
	}
	c.followed = len(children) > len(ahead)+1
	return ahead, nil
}

// vanished says what becomes of a contender whose node is not in the queue any more,
// by an operator's hand, with its parent, or because it was reclaimed; the
// session is the same, or calls would have failed. Its own watch knows which,
// a moment later.
func (c *contender) vanished(ctx context.Context) error {
	if c.own != nil {
		timer := time.NewTimer(c.sess.Times().OwnWatch)
		defer timer.Stop()
		select {
		case <-c.own.gone:
			return c.ownGone()
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	c.letGo()
	return errStartOver
}

// ownGone says what becomes of a contender whose own.gone has been closed. Its node may still be there, if this client may not read it.
func (c *contender) ownGone() error {
	cause := c.own.cause
	switch {
	case errors.Is(cause, driver.ErrDenied), errors.Is(cause, errUnread): // it may be there
		c.letGo()
	default: // it is not, or what is there under its name was made by another session, and is not to be touched
		c.forget()
	}
	if errors.Is(cause, driver.ErrDenied) || errors.Is(cause, driver.ErrReclaimed) {
		return cause
	}
	return errStartOver
}

// prove makes sure, before a grant, that enough of the session is left. A session in which a
// contender only waits makes no writes, and without writes its lease is not renewed. Where there is
// doubt, prove also makes sure that the node exists.
//
// Right after the creation of the node, which was a write, it sends nothing. A write may prove too
// little, because the process was stopped or answers are slow. Then prove sends a sync and another
// write, and repeats that until the lease is live after one. If it is not for as long as a session
// lasts, the contender gives up its place, since others may be faster.
func (c *contender) prove(ctx context.Context) error {
	path, lease, began := c.path(), c.sess.Lease, c.engine.host.Now().Mono
	doubtful := c.own.doubt()
	for slow := false; ; slow = true {
		t := c.sess.Times()
		if left := lease.Deadline().Sub(c.engine.host.Now().Mono); left > t.Enough && lease.Live() && !doubtful {
			return nil
		}
		if slow {
			if err := c.engine.link.Sync(ctx, path); err != nil {
				return err
			}
		}
		switch err := c.engine.link.Check(ctx, path); {
		case err == nil:
			doubtful = false
		case errors.Is(err, zk.ErrNoNode):
			return errStartOver
		default:
			return err
		}
		switch {
		case c.engine.opts.Heartbeat < 0, slow && lease.Live():
			return nil
		case slow && c.engine.host.Now().Mono.Sub(began) > t.Session:
			c.letGo()
			return fmt.Errorf("zookeeper: %s: %w: %w", path, driver.ErrDisconnected, zkconn.ErrSlow)
		case slow:
			backoff.Sleep(ctx, t.Again, nil)
		}
	}
}

// grant makes a hold of a contender that is the first in line.
func (c *contender) grant(ctx context.Context) (driver.Grant, error) {
	if c.czxid == 0 {
		// The creation was repeated: only the node itself tells which of the
		// two creations it stems from, and whether this session made it.
		select {
		case <-c.own.known:
		case <-c.own.gone:
			return driver.Grant{}, c.ownGone()
		case <-ctx.Done():
			return driver.Grant{}, zkconn.AsDisconnected(ctx, driver.ContextError(ctx))
		}
		c.czxid = c.own.knownCzxid()
	}
	if c.czxid == 0 || !c.engine.link.InSession(c.sess) {
		return driver.Grant{}, errStartOver
	}
	h := &hold{
		engine: c.engine, sess: c.sess, path: c.path(), own: c.own,
		owner: c.req.Owner, czxid: c.czxid, known: true,
	}
	if err := c.announce(ctx, h); err != nil {
		return driver.Grant{}, err
	}
	if !c.own.notify(c.req.Lost, c.req.Asked) {
		return driver.Grant{}, c.ownGone()
	}
	c.engine.heartbeat.add(h)
	return driver.Grant{Token: driver.Token(c.czxid), Lease: c.sess.Lease, Hold: h}, nil
}
