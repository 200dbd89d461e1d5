package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// makeParents makes the znode of a lock and those above it, as far as they are
// missing, but not the chroot. The lowest is tried first: usually the others are there.
func (b *engine) makeParents(ctx context.Context, path string) error {
	err := b.makeParent(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && dir(path) == b.paths.chroot {
		return noChroot(dir(path))
	}
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

// findChroot fails if the chroot does not exist. The sync makes a server that is behind
// see one that has just been made.
func (l *link) findChroot(ctx context.Context, chroot string) error {
	_, err := retry(ctx, l, func(ctx context.Context) (read, error) {
		if err := l.sync(ctx, chroot); err != nil {
			return read{}, err
		}
		return l.get(ctx, chroot)
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return noChroot(chroot)
	case errors.Is(err, zk.ErrNoAuth): // to read it; it is there
		return nil
	}
	return stepError("read", chroot, err)
}

func noChroot(chroot string) error {
	return driver.Invalid("servers", "the chroot %q does not exist: make the znode first", chroot)
}
