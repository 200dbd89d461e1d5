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
		if l.complete() == nil && slices.Contains(l.names, c.node) {
			c.keep(l)
			return l.names, nil
		}
		// The list failed, or overtook the creation, or the node is gone already.
		// (Another node with this guid does not count: of a creation that was
		// repeated, the list has to show what came of the last one too.)
	}
	l, err := call(ctx, c.engine.link, "list", c.parent, func() (listing, error) {
		l := c.engine.link.lists(c.parent, c.beside, c.first)
		return l, l.complete()
	})
	if errors.Is(err, zk.ErrNoNode) {
		c.reset()
		return nil, errStartOver
	}
	c.keep(l)
	return l.names, waiting(ctx, err)
}

// keep remembers the lists if there is a znode beside. Else nobody asks for them again, and a
// thousand waiters that keep the names of a thousand others would be a waste of memory.
func (c *contender) keep(l listing) {
	if c.beside != "" {
		c.lists = l
	}
}

// create creates the node. It returns the list that came with it.
func (c *contender) create(ctx context.Context) (listing, error) {
	path := c.parent + "/" + c.prefix()
	began := time.Now()
	w := newWrite(c.sess, path)
	w.create, w.data, w.parent, w.alone = true, c.data, c.parentMade, c.uncertain
	if c.beside != "" {
		// A member of a transaction that is refused is sent twice, and one of the lists could
		// come between the two.
		w.alone = true
	}
	if !c.uncertain { // or what has been sent before may have succeeded
		w.still = c.still
		if c.instead != nil {
			w.instead = c.instead.path()
		}
	}
	listed := c.engine.link.createAndList(w, c.beside, c.first)
	var node outcome
	select {
	case node = <-w.done:
	case <-ctx.Done():
		c.leaveCreating(w)
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
		if w.instead != "" {
			c.instead.clear()
		}
		if c.uncertain {
			c.czxid = 0 // the node that is kept may be the other one
		}
	case errors.Is(err, zk.ErrNoNode):
		if err := c.engine.createParents(ctx, c.parent, nil); err != nil {
			return listing{}, waiting(ctx, err)
		}
		c.parentMade = true
		return listing{}, errStartOver
	case notSent(err):
		return listing{}, errStartOver // the session has changed since
	case sessionOver(err):
		c.clear()
		return listing{}, err
	case unknownOutcome(err):
		c.uncertain = true
		if c.hangUps.tooMany(c.sess, time.Since(began), c.data) {
			return listing{}, tooLarge("create", path, c.data)
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

// hangUps counts how often in a row a server has answered a request by hanging up.
type hangUps int

// tooMany counts one, and tells a server that hangs up on a request because it is too large
// for its buffer, again and again and at once, from a network that fails.
func (n *hangUps) tooMany(sess *session, after time.Duration, data []byte) bool {
	const enough = 4
	if after > sess.times().HangUp || len(data) <= maxGrouped {
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
func (c *contender) leaveCreating(w *write) {
	w.unwanted.Store(true)
	orphan := *c
	c.node, c.uncertain, c.own = "", false, nil
	c.engine.link.tasks.Go(func(context.Context) { orphan.removeCreated(<-w.done) })
}

// removeCreated removes whatever came of a creation that nobody wants any more.
func (c *contender) removeCreated(node outcome) {
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

// createParents creates the znode of a lock, with data, and those above it, as far as they are
// missing, but not the chroot. The lowest is tried first: usually the others are there.
func (e *engine) createParents(ctx context.Context, path string, data []byte) error {
	err := e.link.createParent(ctx, path, data)
	if errors.Is(err, zk.ErrNoNode) && dir(path) == e.paths.chroot {
		return noChroot(dir(path))
	}
	if errors.Is(err, zk.ErrNoNode) && dir(path) != "/" {
		if err := e.createParents(ctx, dir(path), nil); err != nil {
			return err
		}
		err = e.link.createParent(ctx, path, data)
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver // removed again, by the server that found it empty: from the top
	}
	return err
}
