package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// hold is a granted lock: a node of this client that the lock was granted to.
type hold struct {
	*ownNode

	// For SetData.
	czxid   int64 // of the node
	version int32
	known   bool // whether version is the present one, as far as this client has heard
}

// Verify implements [driver.Hold]: a write to the quorum that succeeds only while the node is there.
func (h *hold) Verify(ctx context.Context) error {
	link := h.engine.link
	return link.Retry(ctx, nil, func(now *zkconn.Session) error {
		if now != h.sess {
			return driver.ErrSessionExpired
		}
		if err := link.Check(ctx, h.path); err != nil {
			return h.explain(ctx, err)
		}
		return nil
	})
}

// explain says what the failure of a request to the own node means.
func (h *hold) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, zk.ErrSessionExpired):
		return driver.ErrSessionExpired
	case errors.Is(err, zk.ErrNoNode):
		return fmt.Errorf("%w: %w", h.whyMissing(ctx), err)
	case ctx.Err() != nil:
		return zkconn.Disconnected(ctx)
	}
	return err
}

// Release implements [driver.Hold].
func (h *hold) Release(ctx context.Context) error {
	h.stop()
	h.engine.heartbeat.remove(h)
	missing, err := h.engine.remove(ctx, nil, h.sess, h.path)
	if missing {
		return fmt.Errorf("zookeeper: delete %s: %w: %w", h.path, driver.ErrLost, h.whyMissing(ctx))
	}
	if err != nil && h.engine.link.Session() != h.sess {
		return nil // it went with the session
	}
	return err
}
