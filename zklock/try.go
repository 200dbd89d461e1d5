package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// probe fails with a HeldError if anybody is in the queue who blocks the request, so that
// tries that are bound to fail create no nodes, over which other tries would fail.
func (e *engine) probe(ctx context.Context, parent string, req *driver.Request) error {
	var seen error // the last refusal, by what a server showed that may lag behind
	err := e.link.Retry(ctx, req.Retry, func(*zkconn.Session) error {
		return e.upToDate(ctx, parent, func() error {
			err := e.obstacle(ctx, parent, req)
			if errors.Is(err, driver.ErrHeld) {
				seen = err
			}
			return err
		})
	})
	if errors.Is(err, driver.ErrDisconnected) && seen != nil && ctx.Err() != nil && e.link.IsOpen() {
		return seen // there was no time to ask again
	}
	return err
}

// upToDate returns what look says of a try. Before the try is refused, the server catches up and look
// runs again: a server that lags behind shows holders that had released before the try began.
func (e *engine) upToDate(ctx context.Context, path string, look func() error) error {
	err := look()
	if !errors.Is(err, driver.ErrHeld) && !errors.Is(err, driver.ErrMismatch) {
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

// obstacle is what an exclusive or a shared request would be refused over if it did not wait, or nil.
func (e *engine) obstacle(ctx context.Context, parent string, req *driver.Request) error {
	info, err := e.describe(ctx, parent, req.Key, func(line []entry) ([]entry, error) {
		if err := e.fits(req, line); err != nil || len(blockers(req.Mode, line)) == 0 {
			return nil, err
		}
		return holders(line), nil
	})
	switch {
	case err != nil || !info.Held:
		return zkconn.AsDisconnected(ctx, err)
	case isLease(info.Grant):
		return e.isSemaphore(req.Key, info.Limit, semaphoreAt(parent, kazooLease(info.Grant)))
	}
	e.doubts.askIfOld(parent+"/"+info.Grant, info.QueuedAt)
	return driver.Held(info)
}

// held gives up a try that came second, and returns who came first.
func (c *contender) held(ctx context.Context, first entry) error {
	if c.role == asPlace {
		return c.engine.permitsHeld(ctx, c.req.Key, "")
	}
	path := c.parent + "/" + first.name
	if sequence.Shared(first.name) {
		info, err := c.engine.describe(ctx, c.parent, c.req.Key, onlyHolders)
		switch {
		case err != nil:
			return zkconn.AsDisconnected(ctx, err)
		case info.Grant == c.node || !info.Held:
			return errStartOver
		}
		c.letGo()
		c.engine.doubts.askIfOld(path, info.QueuedAt)
		return driver.Held(info)
	}
	node, err := c.engine.link.Get(ctx, path)
	switch {
	case err == nil:
		c.letGo()
		c.engine.doubts.askIfOld(path, time.UnixMilli(node.Stat.Ctime))
		return driver.Held(infoOf(c.req.Key, first.name, node))
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver
	}
	return zkconn.AsDisconnected(ctx, err)
}
