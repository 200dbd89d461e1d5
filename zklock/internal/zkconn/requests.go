package zkconn

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// Sync makes the server catch up with the leader, without a transaction.
func (l *Link) Sync(ctx context.Context, path string) error {
	_, err := call(ctx, l, "sync", path, func(conn *zk.Conn) (string, error) { return conn.Sync(path) })
	return err
}

// Check is a write to the quorum that changes nothing and succeeds only while a znode is there.
func (l *Link) Check(ctx context.Context, path string) error {
	return l.Transact(ctx, "check", path, &zk.CheckVersionRequest{Path: path, Version: -1})
}

// Transact carries out a transaction. step and path say, in errors, what it is for.
func (l *Link) Transact(ctx context.Context, step, path string, ops ...any) error {
	_, err := call(ctx, l, step, path, func(conn *zk.Conn) ([]zk.MultiResponse, error) { return conn.Multi(ops...) })
	return err
}

// Znode is what a znode says of itself.
type Znode struct {
	Data     []byte
	Children []string // only of watches
	Stat     *zk.Stat
}

func (l *Link) Get(ctx context.Context, path string) (Znode, error) {
	return call(ctx, l, "read", path, func(conn *zk.Conn) (Znode, error) {
		data, stat, err := conn.Get(path)
		return Znode{Data: data, Stat: stat}, err
	})
}

// Set writes to a znode if it has that version.
func (l *Link) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	return call(ctx, l, "write", path, func(conn *zk.Conn) (*zk.Stat, error) {
		return conn.Set(path, data, version)
	})
}

// CreateParent creates a znode that does not end with the session. ended gets the outcome of a request that was sent, even after the
// end of ctx.
func (l *Link) CreateParent(ctx context.Context, path string, ended func(error)) error {
	_, err := call(ctx, l, "create parent", path, func(conn *zk.Conn) (string, error) {
		create, kind := conn.CreateContainer, int32(zk.FlagContainer)
		if l.config.PersistentParents {
			create, kind = conn.Create, zk.FlagPersistent
		}
		made, err := create(path, []byte{}, kind, l.config.ParentACL) // kazoo's Semaphore fails where there is no data
		ended(err)
		return made, err
	})
	return err
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
