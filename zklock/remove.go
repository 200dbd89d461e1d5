package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// removeLater is remove in the background. The channel closes when it has ended.
func (e *engine) removeLater(sess *zkconn.Session, path string) <-chan struct{} {
	ended := make(chan struct{})
	if !e.tasks.Go(func(ctx context.Context) {
		defer close(ended)
		_, _ = e.remove(ctx, sess, path)
	}) {
		close(ended)
	}
	return ended
}

// remove deletes a node of session sess, and returns when the node is gone, or the session is over. missing says that it was gone
// at the first try. If the server refuses the deletion, remove returns the refusal, and tries again in the background.
func (e *engine) remove(ctx context.Context, sess *zkconn.Session, path string) (missing bool, err error) {
	missing, err = e.tryRemove(ctx, sess, path)
	if err != nil && ctx.Err() == nil {
		e.keepRemoving(sess, path, err)
	}
	return missing, err
}

// tryRemove is remove that gives up when the server refuses.
func (e *engine) tryRemove(ctx context.Context, sess *zkconn.Session, path string) (missing bool, err error) {
	again := false
	err = e.link.Retry(ctx, nil, func(now *zkconn.Session) error {
		if now != sess {
			return nil
		}
		err := e.link.Delete(ctx, sess, path, again)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			missing = !again
			return nil
		case err != nil && ctx.Err() != nil:
			return zkconn.Disconnected(ctx)
		case zkconn.UnknownOutcome(err):
			again = true // this request may have deleted it
		}
		return err
	})
	if err == nil {
		e.late.keepNot(sess, path)
		e.tidy(dir(path))
	}
	return missing, err
}

// keepRemoving tries again in the background to delete a node after the server has refused that: an operator may give the permission.
func (e *engine) keepRemoving(sess *zkconn.Session, path string, why error) {
	e.mu.Lock()
	_, already := e.refused[path]
	e.refused[path] = struct{}{}
	e.mu.Unlock()
	if already {
		return
	}
	e.host.Logger().Error("cannot delete own node", "path", path, "error", why)
	e.tasks.Go(func(ctx context.Context) {
		defer func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.refused, path)
		}()
		t := sess.Times()
		for pause := t.Look; backoff.Sleep(ctx, pause, nil); pause = min(2*pause, t.MaxLook) {
			if _, err := e.tryRemove(ctx, sess, path); err == nil {
				return
			}
		}
	})
}
