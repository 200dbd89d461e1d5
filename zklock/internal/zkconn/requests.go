package zkconn

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// Sync makes the server catch up with the leader, without a transaction.
func (l *Link) Sync(ctx context.Context, path string) error {
	return l.do(ctx, "sync", path, func(conn *zk.Conn) error {
		_, err := conn.Sync(path)
		return err
	})
}

// Check is a write to the quorum that changes nothing and succeeds only while a
// znode is there.
func (l *Link) Check(ctx context.Context, path string) error {
	_, err := l.CheckAll(ctx, []string{path})
	return err
}

// CheckAll is Check for several znodes. If it fails because of one of them, failed is the index of that one; otherwise it is 0.
func (l *Link) CheckAll(ctx context.Context, paths []string) (failed int, err error) {
	return call(ctx, l, "check", paths[0], func(conn *zk.Conn) (int, error) {
		ops := make([]any, len(paths))
		for i, path := range paths {
			ops[i] = &zk.CheckVersionRequest{Path: path, Version: -1}
		}
		replies, err := conn.Multi(ops...)
		return max(0, slices.IndexFunc(replies, func(r zk.MultiResponse) bool { return r.Error != nil })), err
	})
}

// Children lists a znode.
func (l *Link) Children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, l, "list", path, func(conn *zk.Conn) ([]string, error) {
		names, _, err := conn.Children(path)
		return names, err
	})
}

// Znode is what a znode says of itself.
type Znode struct {
	Data []byte
	Stat *zk.Stat
}

func (l *Link) Get(ctx context.Context, path string) (Znode, error) {
	return call(ctx, l, "read", path, func(conn *zk.Conn) (Znode, error) {
		data, stat, err := conn.Get(path)
		return Znode{data, stat}, err
	})
}

// Stat asks for what there is to know of a znode but its data, for which older servers require no permission.
func (l *Link) Stat(ctx context.Context, path string) (*zk.Stat, error) {
	return call(ctx, l, "look for", path, func(conn *zk.Conn) (*zk.Stat, error) {
		exists, stat, err := conn.Exists(path)
		if err == nil && !exists {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

// Set writes to a znode if it has that version.
func (l *Link) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	return call(ctx, l, "write", path, func(conn *zk.Conn) (*zk.Stat, error) {
		return conn.Set(path, data, version)
	})
}

// Transact carries out a transaction. step and path say, in errors, what it is for.
func (l *Link) Transact(ctx context.Context, step, path string, ops ...any) error {
	return l.do(ctx, step, path, func(conn *zk.Conn) error {
		_, err := conn.Multi(ops...)
		return err
	})
}

// Delete deletes a znode of session s. again says that it may have done so before.
func (l *Link) Delete(ctx context.Context, s *Session, path string, again bool) error {
	w := newWrite(s, path)
	w.alone = again
	l.tasks.Go(func(context.Context) { l.batches.do(w) })
	select {
	case o := <-w.done:
		return StepError("delete", path, o.Err)
	case <-ctx.Done():
		return StepError("delete", path, driver.ContextError(ctx))
	}
}

// CreateParent creates a znode that does not end with the session.
func (l *Link) CreateParent(ctx context.Context, path string) error {
	return l.do(ctx, "create parent", path, func(conn *zk.Conn) error {
		create, kind := conn.CreateContainer, int32(zk.FlagContainer)
		if l.config.PersistentParents {
			create, kind = conn.Create, zk.FlagPersistent
		}
		_, err := create(path, []byte{}, kind, l.config.ParentACL) // kazoo's Semaphore fails where there is no data
		return err
	})
}

// Listing is the outcome of a list.
type Listing struct {
	Names []string
	Stat  *zk.Stat
	Err   error
}

// list blocks for as long as go-zookeeper does.
func list(conn *zk.Conn, path string) (one Listing) {
	one.Names, one.Stat, one.Err = conn.Children(path)
	return one
}

// List lists a znode.
func (l *Link) List(ctx context.Context, path string) (Listing, error) {
	return call(ctx, l, "list", path, func(conn *zk.Conn) (Listing, error) {
		one := list(conn, path)
		return one, one.Err
	})
}
