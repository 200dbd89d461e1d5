package zklock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// probe fails with a HeldError if anybody is in the queue who blocks the request, so that
// tries that are bound to fail create no nodes, over which tries of other programs would fail. It returns the bound of the node.
func (e *engine) probe(ctx context.Context, parent string, req *driver.Request) (bound int64, err error) {
	var seen error // the last refusal, by what a server showed that may lag behind
	err = e.link.Retry(ctx, req.Retry, func(*zkconn.Session) error {
		return e.upToDate(ctx, parent, func() (err error) {
			bound, err = e.obstacle(ctx, parent, req)
			if errors.Is(err, driver.ErrHeld) {
				seen = err
			}
			return err
		})
	})
	if errors.Is(err, driver.ErrDisconnected) && seen != nil && ctx.Err() != nil && e.link.IsOpen() {
		return 0, seen // there was no time to ask again
	}
	return bound, err
}

// upToDate returns what look says of a try. Before the try is refused, the server catches up and look
// runs again: a server that lags behind shows holders that had released before the try began.
func (e *engine) upToDate(ctx context.Context, path string, look func() error) error {
	err := look()
	if !errors.Is(err, driver.ErrHeld) && !errors.Is(err, driver.ErrNames) {
		return err
	}
	again := zkconn.AsDisconnected(ctx, e.link.Sync(ctx, path))
	if again == nil {
		again = look()
	}
	if errors.Is(err, driver.ErrHeld) && e.outOfTime(ctx, again) {
		return err // there was no time to ask twice
	}
	return again
}

// outOfTime reports whether a step has failed because ctx has ended, and not because the servers could not be reached.
func (e *engine) outOfTime(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err()) && e.link.IsOpen()
}

// obstacle is what a request would be refused over if it did not wait, or nil and the bound of its node.
func (e *engine) obstacle(ctx context.Context, parent string, req *driver.Request) (bound int64, err error) {
	bound = 1 // if the parent is missing
	info, err := e.describe(ctx, parent, req.Key, func(stat *zk.Stat, line []entry) ([]entry, error) {
		bound = nextNumber(stat) + 1
		if err := e.fits(req, line); err != nil || len(blockers(req.Mode, line)) == 0 {
			return nil, err
		}
		return someHolders(line), nil
	})
	if err != nil || !info.Held {
		return bound, zkconn.AsDisconnected(ctx, err)
	}
	e.doubts.askIfOld(parent+"/"+info.Grant, info.QueuedAt)
	return 0, driver.Held(info)
}

// shownHolders is how many holders a failed try reads: a key may have thousands of readers.
const shownHolders = 3

// someHolders returns the holders that a failed try shows.
func someHolders(line []entry) []entry {
	first, _ := holders(line)
	return first[:min(len(first), shownHolders)]
}

// held gives up a try that came second, and returns the holders. The try's own node is deleted by then, unless ctx ends.
func (c *contender) held(ctx context.Context, first entry) error {
	info, err := c.engine.describe(ctx, c.parent, c.req.Key, func(_ *zk.Stat, line []entry) ([]entry, error) {
		if first, _ := holders(line); slices.ContainsFunc(first, func(x entry) bool { return x.name == c.node }) {
			return nil, errStartOver
		}
		return someHolders(line), nil
	})
	switch {
	case err == nil && !info.Held:
		return errStartOver
	case err != nil:
		return zkconn.AsDisconnected(ctx, err)
	}
	c.engine.doubts.askIfOld(c.parent+"/"+first.name, info.QueuedAt)
	if err := c.withdraw(ctx); err != nil {
		return err
	}
	return driver.Held(info)
}
