package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// join makes sure that the contender has a node, as far as can be known, and
// returns the children of the lock node, as they were after that.
func (c *contender) join(ctx context.Context) ([]string, error) {
	if !c.hasNode() {
		l, err := c.create(ctx)
		if err != nil {
			return nil, err
		}
		if l.Err == nil && slices.Contains(l.Names, c.node) {
			c.listed = l.Stat.Pzxid
			return l.Names, nil
		}
		// The list failed, or overtook the creation, or the node is gone already.
		// (Another node with this guid does not count: of a creation that was
		// repeated, the list has to show what came of the last one too.)
	}
	l, err := c.engine.link.List(ctx, c.parent)
	if errors.Is(err, zk.ErrNoNode) {
		c.letGo()
		return nil, errStartOver
	}
	if err != nil {
		return nil, zkconn.AsDisconnected(ctx, err)
	}
	c.listed = l.Stat.Pzxid
	return l.Names, nil
}

// create makes one try to create the node. If it has a reply, it returns the list that came with that; the list may have failed.
func (c *contender) create(ctx context.Context) (zkconn.Listing, error) {
	began, path := time.Now(), c.parent+"/"+c.engine.opts.Names.form().prefix(c.guid, c.req.Mode)
	creation := c.engine.link.Create(c.sess, zkconn.NewNode{
		Path: path, Data: c.data,
		Unbatched: c.stage == unknown, // a member of a transaction that is refused is sent twice
	})
	var node zkconn.Outcome
	select {
	case node = <-creation.Done():
	case <-ctx.Done():
		c.leaveCreating(creation)
		return zkconn.Listing{}, zkconn.AsDisconnected(ctx, driver.ContextError(ctx))
	}
	err := zkconn.StepError("create", path, node.Err)
	switch {
	case err == nil:
		c.engine.countChild(node.Path)
		c.node, c.hangUps = base(node.Path), 0
		if c.stage == unknown {
			c.stage = doubled // the node that is kept may be the other one
		} else {
			c.stage, c.czxid = created, node.Czxid
		}
	case errors.Is(err, zk.ErrNoNode):
		if err := c.engine.createParents(ctx, c.parent); err != nil {
			return zkconn.Listing{}, zkconn.AsDisconnected(ctx, err)
		}
		return zkconn.Listing{}, errStartOver
	case zkconn.NotSent(err):
		return zkconn.Listing{}, errStartOver // the session has changed since
	case zkconn.SessionOver(err):
		c.forget()
		return zkconn.Listing{}, err
	case zkconn.CreatedBefore(err): // the list tells the name of the node, which has this guid
		c.stage, c.hangUps = doubled, 0
		if err := c.engine.link.Sync(ctx, c.parent); err != nil {
			return zkconn.Listing{}, zkconn.AsDisconnected(ctx, err)
		}
		return zkconn.Listing{}, errStartOver
	case zkconn.UnknownOutcome(err):
		c.stage = unknown
		if c.hangUps.tooMany(c.sess, time.Since(began), c.data) {
			return zkconn.Listing{}, tooLarge("create", path, c.data)
		}
		return zkconn.Listing{}, err
	default:
		return zkconn.Listing{}, err
	}
	select {
	case l := <-creation.Listed:
		return l, nil
	case <-ctx.Done():
		return zkconn.Listing{}, zkconn.AsDisconnected(ctx, driver.ContextError(ctx))
	}
}

// hangUps counts how often in a row a server has answered a request by hanging up.
type hangUps int

// tooMany counts one, and tells a server that hangs up on a request because it is too large
// for its buffer, again and again and at once, from a network that fails.
func (n *hangUps) tooMany(sess *zkconn.Session, after time.Duration, data []byte) bool {
	const enough = 4
	if after > sess.Times().HangUp || len(data) <= zkconn.MaxGrouped {
		*n = 0
		return false
	}
	*n++
	return *n >= enough
}

// tooLarge is the error of a request on which servers hang up.
func tooLarge(step, path string, data []byte) error {
	return fmt.Errorf("zookeeper: %s %s: %w", step, path,
		driver.Invalid("data", "the server hangs up on a request with %d bytes of it: more than its jute.maxbuffer allows?", len(data)))
}

// leaveCreating leaves a creation under way to the background, and the contender with
// nothing.
func (c *contender) leaveCreating(creation *zkconn.Creation) {
	orphan := *c
	c.forget()
	creation.Abandon(orphan.removeCreated)
}

// removeCreated removes whatever came of a creation that nobody wants any more.
func (c *contender) removeCreated(node zkconn.Outcome) {
	if node.Err == nil {
		c.engine.countChild(node.Path)
	}
	switch {
	case node.Err == nil && c.stage == absent:
		c.engine.removeLater(c.sess, node.Path)
	case node.Err == nil, zkconn.UnknownOutcome(node.Err), c.stage == unknown:
		c.removeCreations()
	default:
		c.engine.tidy(c.parent)
	}
}
