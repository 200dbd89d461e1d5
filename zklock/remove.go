package zklock

import (
	"context"
	"errors"
	slashpath "path"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// remove deletes a node of session sess, and returns when the node is gone, or the session is over. missing says that the node was gone
// at the first try. If the server refuses the deletion, remove returns the refusal, and the background tries again. again is as for
// [zkconn.Link.Retry].
func (e *engine) remove(
	ctx context.Context, again func(context.Context, error, <-chan struct{}) error, sess *zkconn.Session, path string,
) (missing bool, err error) {
	sent := false
	err = e.link.Retry(ctx, again, func(now *zkconn.Session) error {
		if now != sess {
			return nil
		}
		err := e.link.Delete(ctx, sess, path, sent)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			missing = !sent
			return nil
		case err != nil && ctx.Err() != nil:
			return zkconn.Disconnected(ctx)
		case zkconn.UnknownOutcome(err):
			sent = true // this request may have deleted it
		}
		return err
	})
	switch {
	case err == nil:
		e.tidy(slashpath.Dir(path))
	case ctx.Err() == nil:
		e.removeLater(sess, path)
	}
	return missing, err
}

// removeLater deletes a node in the background. It tries again after a refusal, since an operator may give the permission.
func (e *engine) removeLater(sess *zkconn.Session, path string) {
	e.mu.Lock()
	_, removes := e.removing[path]
	e.removing[path] = struct{}{}
	e.mu.Unlock()
	if removes {
		return
	}
	e.tasks.Go(func(ctx context.Context) {
		t := sess.Times()
		for pause := t.Look; ; pause = min(2*pause, t.MaxLook) {
			_, err := e.remove(ctx, nil, sess, path)
			if err == nil || ctx.Err() != nil {
				break
			}
			if pause == t.Look {
				e.host.Logger().Error("cannot delete own node", "path", path, "error", err)
			}
			backoff.Sleep(ctx, pause, nil)
		}
		e.mu.Lock()
		delete(e.removing, path)
		e.mu.Unlock()
	})
}
