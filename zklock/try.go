package zklock

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/driver"
)

// probe fails if a node in the queue blocks a try. So a try that is bound to fail creates no node, over which other tries would fail.
func (c *contender) probe(ctx context.Context) error {
	err := c.obstacle(ctx)
	if errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNames) {
		// A server that lags behind may show holders that had released before the try began.
		if err = c.engine.link.Sync(ctx, c.parent); err == nil {
			err = c.obstacle(ctx)
		}
	}
	return err
}

// obstacle returns the error of a try, by the queue that the server shows; nil if no node blocks the try.
func (c *contender) obstacle(ctx context.Context) error {
	info, err := c.engine.describe(ctx, c.parent, c.req.Key, func(line []entry) ([]entry, error) {
		if err := c.engine.fits(c.req, line); err != nil || len(blockers(c.req.Mode, line)) == 0 {
			return nil, err
		}
		first, _ := holders(line)
		return first[:min(len(first), shownHolders)], nil
	})
	if err != nil || !info.Held {
		return err
	}
	c.engine.doubts.askIfOld(c.parent+"/"+info.Grant, info.QueuedAt)
	return driver.Held(info)
}

// shownHolders is how many holders a failed try reads: a key may have thousands of readers.
const shownHolders = 3
