package zklock

import (
	"context"
	"errors"
	"fmt"
	slashpath "path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// The recipe is the lock of ZooKeeper's documentation ("ZooKeeper Recipes and Solutions"): a contender creates an ephemeral
// sequential node and lists its siblings. It holds the lock when no node before its own blocks it (rule.go); until then it watches
// nodes before its own (wait.go). A guid in the name identifies the node when the reply to its creation was lost.

// errStartOver ends an attempt that a change in the queue has made pointless. The next attempt begins at once.
var errStartOver = errors.New("start over")

// contender is one call of Acquire. It has a node in the queue, or the makings of one. Only the goroutine of the call uses it.
type contender struct {
	engine *engine
	req    *driver.Request
	parent string
	data   []byte

	sess    *zkconn.Session
	guid    string   // in the name of the node that was created last
	unknown bool     // a creation had no reply: the node may exist
	node    string   // the name of the node; "" if there is none, as far as the contender knows
	czxid   int64    // of the node; 0: to be read
	own     *ownNode // watches the node, once the contender has found it in the queue

	bound     int64   // of the node that a try is about to create; 0 for none
	overtaken bool    // the last node of a try was void, and no node blocked it
	seen      error   // matches driver.ErrHeld: the error of a call that a holder keeps out; nil if none does
	reclaimed bool    // the nodes of the previous incarnation are deleted
	listed    int64   // the Pzxid of the parent in the last list
	followed  bool    // the last list had nodes behind this contender's
	announced string  // the last write to the node before that made the contender list the queue again
	hangUps   hangUps // of creations
}

func (c *contender) path() string { return c.parent + "/" + c.node }

// Acquire implements [driver.Driver].
func (e *engine) Acquire(ctx context.Context, req *driver.Request) (grant driver.Grant, err error) {
	c := &contender{engine: e, req: req, parent: e.paths.lock(req.Key), data: encodeData(req.Owner, req.Data)}
	if err := checkData(c.data); err != nil {
		return grant, err
	}
	granted := false
	defer func() {
		if !granted { // also if the caller's Retry panics
			c.letGo()
			e.tidy(c.parent)
		}
	}()
	for {
		err = e.link.Retry(ctx, req.Retry, func(sess *zkconn.Session) (err error) {
			if c.sess != sess { // a node of another session ends with that session
				c.letGo()
				c.sess = sess
			}
			grant, err = c.attempt(ctx)
			if errors.Is(err, driver.ErrHeld) {
				return err
			}
			return zkconn.AsDisconnected(ctx, err)
		})
		switch {
		case errors.Is(err, errStartOver):
		case err == nil:
			granted = true
			e.keepParents(c.parent)
			return grant, nil
		case c.seen != nil && ctx.Err() != nil && errors.Is(err, driver.ErrDisconnected) && e.link.Wire() != nil: // there is no outage
			return grant, c.seen
		default:
			return grant, err
		}
	}
}

// attempt continues where the last attempt has ended. It returns a grant; errStartOver or a transient error if it is to be called
// again; or the error of the call.
func (c *contender) attempt(ctx context.Context) (grant driver.Grant, err error) {
	if !c.req.Wait && c.node == "" && !c.unknown && c.reclaimed == c.req.Reclaim {
		if err := c.probe(ctx); err != nil {
			return grant, err
		}
	}
	ahead, err := c.locate(ctx)
	if err == nil {
		err = c.engine.fits(c.req, ahead)
	}
	if err == nil && c.req.Reclaim && !c.reclaimed {
		err = c.reclaim(ctx, ahead)
	}
	if err != nil {
		return grant, err
	}
	switch n := len(blockers(c.req.Mode, ahead)); {
	case n == 0 && !void(c.node):
	case !c.req.Wait: // another client was faster
		return grant, c.withdraw(ctx, ahead, n > 0)
	default:
		c.seen = driver.Held(driver.Info{Key: c.req.Key, Held: true})
		c.req.Queued(n)
		limit := c.req.Mode.Limit
		if i := slices.IndexFunc(ahead, func(x entry) bool { return modeOf(x.name).Limit != limit }); i >= 0 {
			c.req.Behind(modeOf(ahead[i].name))
		}
		if err := c.wait(ctx, ahead); err != nil {
			return grant, err
		}
	}
	c.seen = nil
	if err := c.prove(ctx); err != nil {
		return grant, err
	}
	return c.grant(ctx)
}

// locate makes sure that the contender has a node, and returns the nodes before it.
func (c *contender) locate(ctx context.Context) (ahead []entry, err error) {
	l, err := c.join(ctx)
	if err != nil {
		return nil, err
	}
	line, err := c.engine.order(ctx, c.parent, l.Names, c.node)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(line, func(x entry) bool { return x.name == c.node })
	if i < 0 {
		return nil, c.vanished(ctx)
	}
	c.listed, c.followed = l.Stat.Pzxid, len(l.Names) > i+1
	if c.own == nil {
		c.own = &ownNode{
			engine: c.engine, sess: c.sess, path: c.path(), owner: c.req.Owner, czxid: c.czxid,
			known: make(chan struct{}), gone: make(chan struct{}),
		}
		if c.czxid == 0 || len(blockers(c.req.Mode, line[:i])) > 0 {
			c.own.begin()
		} else {
			c.own.timer = c.engine.host.AfterFunc(watchDelay, c.own.begin)
		}
	}
	return line[:i], nil
}

// join makes sure that the contender has a node, and returns a list of the queue that was made after the creation of the node.
func (c *contender) join(ctx context.Context) (zkconn.Listing, error) {
	if c.node == "" && !c.unknown {
		l, err := c.create(ctx)
		if err != nil || l.Err == nil && slices.Contains(l.Names, c.node) {
			return l, err
		}
		// The list failed, or overtook the creation.
	}
	if c.unknown {
		if err := c.engine.link.Sync(ctx, c.parent); err != nil {
			return zkconn.Listing{}, err
		}
	}
	l, err := c.engine.link.List(ctx, c.parent)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return l, err
	}
	if c.unknown {
		i := slices.IndexFunc(l.Names, func(name string) bool { return strings.Contains(name, c.guid) })
		if i < 0 { // the server may still carry out the creation: see orphans.go
			c.letGo()
			return l, errStartOver
		}
		c.node, c.unknown = l.Names[i], false
		c.engine.countChild(c.path())
	}
	return l, nil
}

// create makes one try to create the node, and returns the list that the server made right after the creation. The list may have failed.
func (c *contender) create(ctx context.Context) (zkconn.Listing, error) {
	form := c.engine.opts.Names.form()
	if c.req.Reclaim {
		c.bound = reclaimBound(c.req.Owner)
	}
	c.guid = form.newGUID(c.bound)
	began, path := time.Now(), c.parent+"/"+form.prefix(c.guid, c.req.Mode)
	creation := c.engine.link.Create(ctx, c.sess, path, c.data)
	var outcome zkconn.Outcome
	select {
	case outcome = <-creation.Done:
	case <-ctx.Done():
		orphan := *c
		c.forget()
		c.engine.tasks.Go(func(ctx context.Context) {
			select {
			case outcome := <-creation.Done:
				_ = orphan.created(path, outcome)
				orphan.letGo()
				orphan.engine.tidy(orphan.parent)
			case <-ctx.Done(): // the session ends
			}
		})
		return zkconn.Listing{}, driver.ContextError(ctx)
	}
	err := c.created(path, outcome)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		if err := c.engine.createParents(ctx, c.parent); err != nil {
			return zkconn.Listing{}, err
		}
		return zkconn.Listing{}, errStartOver
	case err != nil:
		return zkconn.Listing{}, c.hangUps.check(c.sess, began, c.data, err)
	}
	select {
	case l := <-creation.Listed:
		return l, nil
	case <-ctx.Done():
		return zkconn.Listing{}, driver.ContextError(ctx)
	}
}

// created notes the outcome of a creation at a path.
func (c *contender) created(path string, outcome zkconn.Outcome) error {
	err := zkconn.StepError("create", path, outcome.Err)
	if err == nil {
		c.node, c.czxid, c.hangUps = slashpath.Base(outcome.Path), outcome.Czxid, 0
		c.engine.countChild(c.path())
	}
	c.unknown = zkconn.UnknownOutcome(err)
	return err
}

// standing fails if the quorum does not have the contender's node.
func (c *contender) standing(ctx context.Context) error {
	err := c.engine.link.Check(ctx, c.path())
	if errors.Is(err, zk.ErrNoNode) {
		return c.vanished(ctx)
	}
	return err
}

// vanished is called when a list does not show the contender's node, or the quorum does not have it. A program has deleted the node, or
// its parent, or the server shows an old list.
func (c *contender) vanished(ctx context.Context) error {
	if c.own == nil {
		c.letGo()
		return errStartOver
	}
	return c.ended(c.own.whyMissing(ctx))
}

// ended gives up a node that is gone, or that this client may not read, or whose czxid is not the expected one.
func (c *contender) ended(cause error) error {
	if errors.Is(cause, driver.ErrSessionExpired) { // if there is a node of this name, another session has created it
		c.forget()
	} else {
		c.letGo()
	}
	if errors.Is(cause, driver.ErrDenied) || errors.Is(cause, driver.ErrReclaimed) {
		return cause
	}
	return errStartOver
}

// prove makes sure, before a grant, that enough of the session is left, and that the node exists if no event would have told of its
// deletion. A session in which contenders only wait makes no writes, and without writes its lease is not renewed.
//
// Right after the creation of the node, which is a write, prove sends nothing. If one write proves too little, because the process
// was stopped or replies are slow, prove sends syncs and writes until the lease is live after one. If that takes longer than a
// session timeout, the contender gives up its place, since other clients may be faster.
func (c *contender) prove(ctx context.Context) error {
	link, now, lease := c.engine.link, c.engine.host.Now, c.sess.Lease
	began, doubtful := now().Mono, c.own.doubt()
	for slow := false; ; slow = true {
		t := c.sess.Times()
		if lease.Deadline().Sub(now().Mono) > t.Enough && lease.Live() && !doubtful {
			return nil
		}
		if slow {
			if err := link.Sync(ctx, c.path()); err != nil {
				return err
			}
		}
		if err := c.standing(ctx); err != nil {
			return err
		}
		switch {
		case c.engine.opts.Heartbeat < 0, slow && lease.Live():
			return nil
		case slow && now().Mono.Sub(began) > t.Session:
			c.letGo()
			return fmt.Errorf("zookeeper: %s: %w: %w", c.parent, driver.ErrDisconnected, zkconn.ErrSlow)
		case slow:
			backoff.Sleep(ctx, c.engine.host, t.Again, nil)
		}
		doubtful = false
	}
}

// grant makes a hold of a contender whose turn has come.
func (c *contender) grant(ctx context.Context) (driver.Grant, error) {
	if c.czxid == 0 { // only the node tells whether this session created it
		select {
		case <-c.own.known:
		case <-c.own.gone:
			return driver.Grant{}, c.ended(c.own.cause)
		case <-ctx.Done():
			return driver.Grant{}, driver.ContextError(ctx)
		}
		c.czxid = c.own.knownCzxid()
	}
	if c.czxid == 0 || c.engine.link.Session() != c.sess {
		return driver.Grant{}, errStartOver
	}
	h := &hold{ownNode: c.own, czxid: c.czxid, known: true}
	if c.req.Mode.Limit > c.engine.mostCounted && c.followed { // the next waiter may watch the node to learn of this grant: see planFor
		if err := h.SetData(ctx, c.req.Data); errors.Is(err, driver.ErrLost) {
			return driver.Grant{}, errStartOver
		} else if err != nil {
			return driver.Grant{}, err
		}
	}
	if !c.own.notify(c.req.Lost, c.req.Asked) {
		return driver.Grant{}, c.ended(c.own.cause)
	}
	c.engine.heartbeat.add(h)
	return driver.Grant{Token: driver.Token(c.czxid), Lease: c.sess.Lease, Hold: h}, nil
}

// withdraw deletes the node of a try that was blocked or void. When the node is deleted, it returns a HeldError with the holders ahead,
// or errStartOver to probe again. If the deletion fails, the background deletes the node, and the call never uses it again.
func (c *contender) withdraw(ctx context.Context, ahead []entry, blocked bool) error {
	refused := errStartOver
	if blocked { // the list followed the creation, so the server shows what was confirmed before
		nodes, err := c.engine.readAll(ctx, c.parent, shown(ahead))
		if err != nil {
			return err
		}
		if info, ok := infoOf(c.req.Key, ahead, nodes); ok { // otherwise the holder has changed
			refused = driver.Held(info)
		}
	}
	c.seen, c.overtaken = nil, !blocked
	c.own.stop()
	_, err := c.engine.remove(ctx, c.req.Retry, c.sess, c.path())
	c.forget()
	if err != nil {
		return err
	}
	return refused
}

// letGo gives up the contender's node, and deletes it in the background: also a node that a list does not show, since the server
// may lag behind.
func (c *contender) letGo() {
	former := *c
	c.forget() // before the node goes
	switch {
	case former.unknown:
		c.engine.orphans.add(c.sess, c.parent, c.guid, time.Now().Add(c.sess.Times().Late))
	case former.node != "":
		c.engine.tasks.Go(func(ctx context.Context) { _, _ = former.engine.remove(ctx, nil, former.sess, former.path()) })
	}
}

// forget makes the contender begin again. It deletes nothing.
func (c *contender) forget() {
	if c.own != nil {
		c.own.stop()
	}
	c.unknown, c.node, c.czxid, c.own = false, "", 0, nil
}
