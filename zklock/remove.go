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
		_, _ = e.remove(ctx, sess, path, false)
	}) {
		close(ended)
	}
	return ended
}

// remove deletes a node that was made in the session sess. It tries until the node is known to be gone: deleted, not
// there, or ended with its session. missing says that it was not there at the first try. If the server refuses the
// deletion, remove returns the refusal, and the background goes on trying.
//
// If another session is the present one by now, the node has usually ended with sess. There are two exceptions, in which
// the present session deletes it. A session that the client has only left is still kept by the servers. And a server that
// says that sess is over may be wrong; a caller that needs to be sure asks for proof. See [zkconn.Link.EndSession].
func (e *engine) remove(ctx context.Context, sess *zkconn.Session, path string, proof bool) (missing bool, err error) {
	missing, err = e.tryRemove(ctx, sess, path, proof)
	if err != nil && ctx.Err() == nil {
		e.keepRemoving(sess, path, err)
	}
	return missing, err
}

// tryRemove is remove that gives up when the server refuses.
func (e *engine) tryRemove(ctx context.Context, sess *zkconn.Session, path string, proof bool) (missing bool, err error) {
	certain := true
	err = e.link.Retry(ctx, nil, func(now *zkconn.Session) error {
		if now != sess && !sess.Left() && !proof {
			return nil
		}
		err := e.link.Delete(ctx, now, path, !certain)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			// go-zookeeper runs what it is handed too late in the next session,
			// where the node is missing because it has gone with its own.
			missing = certain && e.link.InSession(sess)
			return nil
		case err != nil && ctx.Err() != nil:
			return zkconn.Disconnected(ctx)
		case zkconn.UnknownOutcome(err):
			certain = false // that may have been this very request
		}
		return err
	})
	if err == nil {
		e.late.keepNot(sess, path)
		e.tidy(dir(path))
	}
	return missing, err
}

// keepRemoving goes on trying to delete a node, in the background, after the server has
// refused that: those who keep others waiting by such a node may be given the
// permission.
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
			if _, err := e.tryRemove(ctx, sess, path, false); err == nil {
				return
			}
		}
	})
}
