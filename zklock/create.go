package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

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
		i := slices.IndexFunc(l.Names, func(name string) bool { return strings.Contains(name, c.guidInName()) })
		if i < 0 { // the server may still carry out the creation: see late.go
			c.letGo()
			return l, errStartOver
		}
		c.node, c.unknown = l.Names[i], false
	}
	return l, nil
}

// create makes one try to create the node, and returns the list that the server made right after the creation. The list may have failed.
func (c *contender) create(ctx context.Context) (zkconn.Listing, error) {
	began, path := time.Now(), c.parent+"/"+c.engine.opts.Names.form().prefix(c.guid, c.req.Mode)
	creation := c.engine.link.Create(c.sess, zkconn.NewNode{Path: path, Data: c.data})
	var outcome zkconn.Outcome
	select {
	case outcome = <-creation.Done():
	case <-ctx.Done():
		orphan := *c
		c.forget()
		creation.Abandon(func(outcome zkconn.Outcome) {
			_ = orphan.created(outcome)
			orphan.letGo()
		})
		return zkconn.Listing{}, driver.ContextError(ctx)
	}
	err := c.created(outcome)
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

// created notes the outcome of a creation.
func (c *contender) created(outcome zkconn.Outcome) error {
	err := zkconn.StepError("create", c.parent, outcome.Err)
	if err == nil {
		c.node, c.czxid, c.hangUps = base(outcome.Path), outcome.Czxid, 0
	}
	c.unknown = zkconn.UnknownOutcome(err)
	return err
}

// hangUps counts how often in a row a server has hung up on a request with data, at once.
type hangUps int

// check returns the error of a request with data. A server hangs up, each time and at once, on a request that is larger than its buffer.
func (n *hangUps) check(sess *zkconn.Session, began time.Time, data []byte, err error) error {
	const enough = 4
	if !zkconn.UnknownOutcome(err) {
		return err
	}
	if *n++; time.Since(began) > sess.Times().HangUp || len(data) <= zkconn.MaxGrouped {
		*n = 0
	}
	if *n < enough {
		return err
	}
	return fmt.Errorf("zookeeper: %w",
		driver.Invalid("data", "the server hangs up on a request with %d bytes of it: more than its jute.maxbuffer allows?", len(data)))
}

// createParents creates the znode of a lock, and the znodes above it that are missing, but not the chroot. It tries the lowest first.
func (e *engine) createParents(ctx context.Context, path string) error {
	err := e.link.CreateParent(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && dir(path) == e.paths.chroot {
		return zkconn.NoChroot(dir(path))
	}
	if errors.Is(err, zk.ErrNoNode) && dir(path) != "/" {
		if err := e.createParents(ctx, dir(path)); err != nil {
			return err
		}
		err = e.link.CreateParent(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver // the server has removed the znode above, which was empty
	}
	return err
}
