package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// probe fails if a node in the queue blocks a try. So a try that is bound to fail creates no node, over which other tries would fail.
// Otherwise it sets the bound of the node to be created, unless the last node was void though no node blocked it: the call would be
// refused again and again while other requests share the key.
func (c *contender) probe(ctx context.Context) error {
	err := c.obstacle(ctx)
	if errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNames) {
		// A server that lags behind may show holders that had released before the try began.
		if err = c.engine.link.Sync(ctx, c.parent); err == nil {
			err = c.obstacle(ctx)
		}
	}
	if c.overtaken {
		c.bound = 0
	}
	return err
}

// obstacle returns the error of a try, by the queue that the server shows; nil if no node blocks the try.
func (c *contender) obstacle(ctx context.Context) error {
	c.bound = 1 // if the parent does not exist
	info, err := c.engine.describe(ctx, c.parent, c.req.Key, func(parent *zk.Stat, line []entry) ([]entry, error) {
		c.bound = nextNumber(parent) + 1
		if err := c.engine.fits(c.req, line); err != nil || len(blockers(c.req.Mode, line)) == 0 {
			return nil, err
		}
		return shown(line), nil
	})
	if err != nil {
		return err
	}
	if c.seen = nil; !info.Held {
		return nil
	}
	c.engine.doubts.askIfOld(c.parent+"/"+info.Grant, info.QueuedAt)
	c.seen = driver.Held(info)
	return c.seen
}

// shown returns the holders that a failed try reads: a key may have thousands of readers.
func shown(line []entry) []entry {
	first, _ := holders(line)
	return first[:min(len(first), 3)]
}
