package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// spawn runs f in the background, until it returns or the client closes.
// Closing ends the session, and with it whatever f had not got round to.
func (b *backend) spawn(f func(ctx context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.background.Err() != nil {
		return
	}
	b.tasks.Go(func() { f(b.background) })
}

// remove deletes a node of session sess, trying until it is known to be gone:
// deleted, not there, or ended with its session. It reports whether it was not
// there at the first try.
func (b *backend) remove(ctx context.Context, sess *session, path string) (missing bool, err error) {
	for certain := true; ; {
		now, err := b.link.ready(ctx, nil)
		if err != nil {
			return false, err
		}
		if now.id != sess.id {
			return false, nil
		}
		_, err = call(ctx, func() (struct{}, error) { return struct{}{}, b.link.conn.Delete(path, -1) }, nil)
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, zk.ErrNoNode):
			return certain, nil
		case ctx.Err() != nil:
			return false, fmt.Errorf("%w: %w", holdfast.ErrDisconnected, ended(ctx))
		case unknownOutcome(err):
			certain = false // that may have been this very request
		case !transient(err):
			return false, stepError("delete", path, err)
		}
		b.link.pause(ctx)
	}
}

// discard deletes a node in the background.
func (b *backend) discard(sess *session, path string) {
	b.spawn(func(ctx context.Context) {
		if _, err := b.remove(ctx, sess, path); err != nil && ctx.Err() == nil {
			b.host.Logger().Error("cannot delete own node", "path", path, "error", err)
		}
	})
}
