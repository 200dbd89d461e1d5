package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// hold is a granted lock: a node of ours that is the first in its queue.
type hold struct {
	b     *engine
	sess  *session
	path  string
	key   string
	token uint64
	own   *own
}

// Verify implements [driver.Hold]: a write to the quorum that succeeds only
// while the node is there.
func (h *hold) Verify(ctx context.Context) error {
	for {
		sess, err := h.b.link.ready(ctx, nil)
		if err != nil {
			return err
		}
		if sess != h.sess {
			return holdfast.ErrSessionExpired
		}
		err = h.b.link.check(ctx, h.path)
		switch {
		case err == nil && h.b.link.same(h.sess):
			return nil
		case err == nil, sessionOver(err):
			return holdfast.ErrSessionExpired
		case errors.Is(err, zk.ErrNoNode):
			return h.own.missing()
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", holdfast.ErrDisconnected, driver.ContextError(ctx))
		case !transient(err):
			return stepError("check", h.path, err)
		}
		h.b.link.pause(ctx)
	}
}

// Release implements [driver.Hold].
func (h *hold) Release(ctx context.Context) error {
	h.own.stop()
	h.b.heartbeat.remove(h)
	missing, err := h.b.remove(ctx, h.sess, h.path)
	if missing {
		return fmt.Errorf("zookeeper: delete %s: %w: %w", h.path, holdfast.ErrLost, h.own.missing())
	}
	return err
}
