package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// join makes sure that the contender has a node, as far as can be known, and
// returns the children of the lock node, as they were after that.
func (c *contender) join(ctx context.Context) ([]string, error) {
	if c.node == "" {
		l, err := c.create(ctx)
		if err != nil {
			return nil, err
		}
		if l.err == nil && slices.Contains(l.names, c.node) {
			return l.names, nil
		}
		// The list failed, or overtook the creation, or the node is gone already.
		// (Another node with this guid does not count: of a creation that was
		// repeated, the list has to show what came of the last one too.)
	}
	names, err := c.engine.link.children(ctx, c.parent)
	if errors.Is(err, zk.ErrNoNode) {
		c.reset()
		return nil, errStartOver
	}
	return names, waiting(ctx, err)
}

// create creates the node. It returns the list that came with it.
func (c *contender) create(ctx context.Context) (listing, error) {
	path := c.parent + "/" + c.engine.opts.Names.name(c.guid)
	began := time.Now()
	made, listed := c.engine.link.createAndList(c.sess, path, c.data)
	var node created
	select {
	case node = <-made:
	case <-ctx.Done():
		c.leaveCreating(made)
		return listing{}, waiting(ctx, driver.ContextError(ctx))
	}
	err := stepError("create", path, node.err)
	switch {
	case err == nil && !node.same:
		c.removeCreated(node)
		c.clear()
		return listing{}, errStartOver
	case err == nil:
		c.node, c.czxid, c.hangUps = base(node.path), node.czxid, 0
		if c.uncertain {
			c.czxid = 0 // the node that is kept may be the other one
		}
	case errors.Is(err, zk.ErrNoNode):
		if err := c.engine.createParents(ctx, c.parent); err != nil {
			return listing{}, waiting(ctx, err)
		}
		return listing{}, errStartOver
	case notSent(err):
		return listing{}, errStartOver // the session has changed since
	case sessionOver(err):
		c.clear()
		return listing{}, err
	case unknownOutcome(err):
		c.uncertain = true
		if c.tooLarge(time.Since(began)) {
			return listing{}, fmt.Errorf("zookeeper: create %s: %w", path,
				driver.Invalid("data", "the server hangs up on a request with %d bytes of it: more than its jute.maxbuffer allows?", len(c.data)))
		}
		return listing{}, err
	default:
		return listing{}, err
	}
	select {
	case l := <-listed:
		return l, nil
	case <-ctx.Done():
		return listing{}, waiting(ctx, driver.ContextError(ctx))
	}
}

// tooLarge tells a server that hangs up on a request because it is too large for
// its buffer, again and again and at once, from a network that fails.
func (c *contender) tooLarge(after time.Duration) bool {
	const enough, small = 4, 1024
	if after > c.sess.times().HangUp || len(c.data) < small {
		c.hangUps = 0
		return false
	}
	c.hangUps++
	return c.hangUps >= enough
}

// leaveCreating leaves a creation under way to the background, and the contender with
// nothing.
func (c *contender) leaveCreating(made <-chan created) {
	orphan := *c
	c.node, c.uncertain, c.own = "", false, nil
	c.engine.link.tasks.Go(func(context.Context) { orphan.removeCreated(<-made) })
}

// removeCreated removes whatever came of a creation that nobody wants any more.
func (c *contender) removeCreated(node created) {
	switch {
	case node.err == nil && node.same && !c.uncertain:
		c.engine.removeLater(c.sess, node.path)
	case node.err == nil, unknownOutcome(node.err), c.uncertain:
		// What was made in a session that is over has ended with it.
		if sess := c.engine.link.current(); sess != nil {
			c.removeCreations(sess)
		}
	}
}

// createParents creates the znode of a lock and those above it, as far as they are
// missing, but not the chroot. The lowest is tried first: usually the others are there.
func (e *engine) createParents(ctx context.Context, path string) error {
	err := e.link.createParent(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && dir(path) == e.paths.chroot {
		return noChroot(dir(path))
	}
	if errors.Is(err, zk.ErrNoNode) && dir(path) != "/" {
		if err := e.createParents(ctx, dir(path)); err != nil {
			return err
		}
		err = e.link.createParent(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver // removed again, by the server that found it empty: from the top
	}
	return err
}
