package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// makeParents makes the znode of a lock and those above it, as far as they are
// missing. The lowest is tried first: usually the others are there.
func (b *engine) makeParents(ctx context.Context, path string) error {
	err := b.makeParent(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && dir(path) != "/" {
		if err := b.makeParents(ctx, dir(path)); err != nil {
			return err
		}
		err = b.makeParent(ctx, path)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	if errors.Is(err, zk.ErrNoNode) {
		return errNotGranted // removed again, by the server that found it empty: from the top
	}
	return stepError("create parent", path, err)
}

func (b *engine) makeParent(ctx context.Context, path string) error {
	_, err := call(ctx, b.link, func() (string, error) {
		if b.opts.PersistentParents {
			return b.link.conn.Create(path, nil, zk.FlagPersistent, b.opts.ParentACL)
		}
		return b.link.conn.CreateContainer(path, nil, zk.FlagContainer, b.opts.ParentACL)
	})
	return err
}
