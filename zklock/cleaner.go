package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// spawn runs f in the background, until it returns or the client closes.
// Closing ends the session, and with it whatever f had not got round to.
func (b *engine) spawn(f func(ctx context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.background.Err() != nil {
		return
	}
	b.tasks.Go(func() { f(b.background) })
}

// remove deletes a node of session sess, trying until it is known to be gone:
// deleted, not there, or ended with its session. It reports whether it was not
// there at the first try. If the server will not have it deleted, it says so, and
// the background goes on trying.
func (b *engine) remove(ctx context.Context, sess *session, path string) (missing bool, err error) {
	missing, err = b.delete(ctx, sess, path)
	if err != nil && ctx.Err() == nil {
		b.insist(sess, path, err)
	}
	return missing, err
}

// delete is remove that gives up when the server refuses.
func (b *engine) delete(ctx context.Context, sess *session, path string) (missing bool, err error) {
	for certain := true; ; {
		now, err := b.link.ready(ctx, nil)
		if err != nil {
			return false, err
		}
		if now != sess {
			return false, nil
		}
		_, err = call(ctx, b.link, func() (struct{}, error) { return struct{}{}, b.link.conn.Delete(path, -1) })
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, zk.ErrNoNode):
			// go-zookeeper runs what it is handed too late in the next session,
			// where the node is missing because it has gone with its own.
			return certain && b.link.same(sess), nil
		case ctx.Err() != nil:
			return false, fmt.Errorf("%w: %w", holdfast.ErrDisconnected, driver.ContextError(ctx))
		case unknownOutcome(err):
			certain = false // that may have been this very request
		case !transient(err):
			return false, stepError("delete", path, err)
		}
		b.link.pause(ctx)
	}
}

// insist goes on trying to delete a node, in the background, after the server has
// refused that: those who keep others waiting by such a node may be given the
// permission. The pauses are those between looks for strays.
func (b *engine) insist(sess *session, path string, why error) {
	b.mu.Lock()
	_, already := b.refused[path]
	b.refused[path] = struct{}{}
	b.mu.Unlock()
	if already {
		return
	}
	b.host.Logger().Error("cannot delete own node", "path", path, "error", why)
	b.spawn(func(ctx context.Context) {
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.refused, path)
		}()
		for pause := sess.timeout() / 4; backoff.Sleep(ctx, pause, nil); pause = min(2*pause, longestPause*sess.timeout()) {
			if _, err := b.delete(ctx, sess, path); err == nil {
				return
			}
		}
	})
}

// discard deletes a node in the background.
func (b *engine) discard(sess *session, path string) {
	b.spawn(func(ctx context.Context) { _, _ = b.remove(ctx, sess, path) })
}
