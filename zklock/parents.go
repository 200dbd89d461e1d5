package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// createParents creates the znode of a lock, and the znodes above it that are missing, but not the chroot. It tries the lowest first.
func (e *engine) createParents(ctx context.Context, path string) error {
	err := e.link.CreateParent(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && dir(path) == e.paths.chroot {
		return zkconn.NoChroot(dir(path))
	}
	if errors.Is(err, zk.ErrNoNode) && dir(path) != "/" {
		if err := e.createParents(ctx, dir(path)); err != nil {
			return err
		}
		err = e.link.CreateParent(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver // the server has removed the znode above, which was empty
	}
	return err
}
