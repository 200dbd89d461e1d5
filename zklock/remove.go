package zklock

import (
	"context"
	"errors"
	slashpath "path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// remove deletes a node of session sess, and returns when the node is gone, or the session is over. missing says that the node was gone
// at the first try. After an error the background tries again. again is as for [zkconn.Link.Retry].
func (e *engine) remove(
	ctx context.Context, again func(context.Context, error, <-chan struct{}) error, sess *zkconn.Session, path string,
) (missing bool, err error) {
	sent := false
	err = e.link.Retry(ctx, again, func(now *zkconn.Session) error {
		if now != sess {
			return nil
		}
		err := e.link.Delete(ctx, sess, path)
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
	if err == nil {
		e.tidy(slashpath.Dir(path))
		return missing, nil
	}
	if ctx.Err() == nil && !errors.Is(err, driver.ErrDisconnected) {
		e.host.Logger().Error("cannot delete own node", "path", path, "error", err)
	}
	e.orphans.add(sess, slashpath.Dir(path), slashpath.Base(path), time.Time{})
	return missing, err
}
