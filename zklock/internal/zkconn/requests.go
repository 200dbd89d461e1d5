package zkconn

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// Sync makes the server catch up with the leader, without a transaction.
func (l *Link) Sync(ctx context.Context, path string) error {
	return l.do(ctx, "sync", path, func() error {
		_, err := l.conn.Sync(path)
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
	return call(ctx, l, "check", paths[0], func() (int, error) {
		ops := make([]any, len(paths))
		for i, path := range paths {
			ops[i] = &zk.CheckVersionRequest{Path: path, Version: -1}
		}
		replies, err := l.conn.Multi(ops...)
		return max(0, slices.IndexFunc(replies, func(r zk.MultiResponse) bool { return r.Error != nil })), err
	})
}

// Children lists a znode.
func (l *Link) Children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, l, "list", path, func() ([]string, error) {
		names, _, err := l.conn.Children(path)
		return names, err
	})
}

// Znode is what a znode says of itself.
type Znode struct {
	Data []byte
	Stat *zk.Stat
}

func (l *Link) Get(ctx context.Context, path string) (Znode, error) {
	return call(ctx, l, "read", path, func() (Znode, error) {
		data, stat, err := l.conn.Get(path)
		return Znode{data, stat}, err
	})
}

// Stat asks for what there is to know of a znode but its data, for which older servers require no permission.
func (l *Link) Stat(ctx context.Context, path string) (*zk.Stat, error) {
	return call(ctx, l, "look for", path, func() (*zk.Stat, error) {
		exists, stat, err := l.conn.Exists(path)
		if err == nil && !exists {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

// Set writes to a znode if it has that version. ended, which is called also if ctx has ended
// by then, hears what came of it.
func (l *Link) Set(ctx context.Context, path string, data []byte, version int32, ended func(error)) (*zk.Stat, error) {
	return call(ctx, l, "write", path, func() (*zk.Stat, error) {
		stat, err := l.conn.Set(path, data, version)
		ended(err)
		return stat, err
	})
}

// Transact carries out a transaction. step and path say, in errors, what it is for.
func (l *Link) Transact(ctx context.Context, step, path string, ops ...any) error {
	return l.do(ctx, step, path, func() error {
		_, err := l.conn.Multi(ops...)
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

// CreateParent creates a znode that does not end with the session. ended is as for Set.
func (l *Link) CreateParent(ctx context.Context, path string, data []byte, ended func(error)) error {
	return l.do(ctx, "create parent", path, func() error {
		create, kind := l.conn.CreateContainer, int32(zk.FlagContainer)
		if l.config.PersistentParents {
			create, kind = l.conn.Create, zk.FlagPersistent
		}
		_, err := create(path, data, kind, l.config.ParentACL)
		ended(err)
		return err
	})
}

// Listing is the outcome of a list.
type Listing struct {
	Names []string
	Stat  *zk.Stat
	Err   error
	Other *Listing // of another znode, if that was listed as well
}

// Failure is why a list is missing, this one or that of the other znode; nil if none is. That the other
// znode does not exist is no failure.
func (l *Listing) Failure() error {
	if l.Err == nil && l.Other != nil && !errors.Is(l.Other.Err, zk.ErrNoNode) {
		return l.Other.Err
	}
	return l.Err
}

// listOne lists a znode. Like what is built on it, it blocks for as long as go-zookeeper does.
func (l *Link) listOne(path string) (one Listing) {
	one.Names, one.Stat, one.Err = l.conn.Children(path)
	return one
}

// listAll lists several znodes in one flight.
func (l *Link) listAll(paths ...string) []Listing {
	all := make([]Listing, len(paths))
	var lists sync.WaitGroup
	for i, path := range paths {
		lists.Go(func() { all[i] = l.listOne(path) })
	}
	lists.Wait()
	return all
}

// lists is List without ctx.
func (l *Link) lists(path, also string, first bool) Listing {
	switch {
	case also == "":
		return l.listOne(path)
	case first:
		other := l.listOne(also)
		one := l.listOne(path)
		one.Other = &other
		return one
	}
	all := l.listAll(path, also)
	all[0].Other = &all[1]
	return all[0]
}

// List lists a znode and, unless that is "", another one: in the same flight, or first. It fails if one of the lists is
// missing.
func (l *Link) List(ctx context.Context, path, also string, first bool) (Listing, error) {
	return call(ctx, l, "list", path, func() (Listing, error) {
		one := l.lists(path, also, first)
		return one, one.Failure()
	})
}

// Survey reads a znode and lists several, in one flight. Each list has an error of its own.
func (l *Link) Survey(ctx context.Context, path string, lists ...string) (Znode, []Listing, error) {
	type both struct {
		node Znode
		all  []Listing
	}
	found, err := call(ctx, l, "look at", path, func() (f both, err error) {
		var listed sync.WaitGroup
		listed.Go(func() { f.all = l.listAll(lists...) })
		f.node.Data, f.node.Stat, err = l.conn.Get(path)
		listed.Wait()
		return f, err
	})
	return found.node, found.all, err
}
