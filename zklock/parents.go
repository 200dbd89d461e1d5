package zklock

import (
	"context"
	"errors"
	slashpath "path"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A call may create the parents of its node, and fail before it is granted the key. The server never removes a container that never
// had a child, and never a persistent znode. So the client notes each parent that it creates, and deletes the parent when it is empty,
// as often as a call fails, a node is deleted, or the session reaches a server. It counts its own children of the parent, those whose
// reply was lost too (late.go): if the parent had more, another client uses it, and the parent stays. It also stays after a grant. A
// client that finds its parent deleted creates it again.

// createParents creates the znode of a lock, and the znodes above it that are missing, but not the chroot. It tries the lowest first.
func (e *engine) createParents(ctx context.Context, path string) error {
	err := e.createParent(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && slashpath.Dir(path) == e.paths.chroot {
		return zkconn.NoChroot(slashpath.Dir(path))
	}
	if errors.Is(err, zk.ErrNoNode) && slashpath.Dir(path) != "/" {
		if err := e.createParents(ctx, slashpath.Dir(path)); err != nil {
			return err
		}
		err = e.createParent(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver // a client or the server has removed the znode above, which was empty
	}
	return err
}

// createParent creates one parent, and notes it in e.made, unless it is the root or above the root.
func (e *engine) createParent(ctx context.Context, path string) error {
	return e.link.CreateParent(ctx, path, func(err error) {
		if err != nil && !zkconn.UnknownOutcome(err) || within(e.paths.chroot+e.paths.root, path) {
			return
		}
		e.mu.Lock()
		e.made[path] = 0
		e.mu.Unlock()
		e.countChild(path)
		if ctx.Err() != nil { // the call may be over
			e.tidy(path)
		}
	})
}

// countChild notes that this client has created a child.
func (e *engine) countChild(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.made[slashpath.Dir(path)]; ok {
		e.made[slashpath.Dir(path)] = n + 1
	}
}

// lowestMade returns the lowest of path and the znodes above it that is in e.made, and the number of children that this client has
// created in it; "" if there is none.
func (e *engine) lowestMade(path string) (lowest string, children int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ; path != "/"; path = slashpath.Dir(path) {
		if n, ok := e.made[path]; ok {
			return path, n
		}
	}
	return "", 0
}

// keepParents is called when a lock is granted: its parents stay.
func (e *engine) keepParents(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ; len(e.made) > 0 && path != "/"; path = slashpath.Dir(path) {
		delete(e.made, path)
	}
}

// tidy deletes, in the background, those of path and the znodes above it that this client has created and that are empty.
func (e *engine) tidy(path string) {
	if path, _ = e.lowestMade(path); path == "" || e.link.Wire() == nil { // if not, see newEngine
		return
	}
	e.tasks.Go(func(ctx context.Context) {
		for ; path != "" && e.deleteParent(ctx, path); path, _ = e.lowestMade(path) {
			e.mu.Lock()
			delete(e.made, path)
			e.mu.Unlock()
		}
	})
}

// deleteParent deletes a parent that is empty. It returns false if the parent may become empty later.
func (e *engine) deleteParent(ctx context.Context, path string) bool {
	err := e.link.Retry(ctx, nil, func(*zkconn.Session) error {
		if err := e.link.Sync(ctx, path); err != nil {
			return err
		}
		stat, err := e.link.Stat(ctx, path)
		if err != nil {
			return err
		}
		orphaned := e.late.expects(path) // a child may be this client's though it is not counted yet
		switch made, children := e.lowestMade(path); {
		case stat.NumChildren > 0 && (orphaned || nextNumber(stat) <= children):
			return zk.ErrNotEmpty
		case made != path || nextNumber(stat) > children: // it had a grant, or another client uses it
			return nil
		}
		return e.link.Transact(ctx, "delete parent", path, &zk.DeleteRequest{Path: path, Version: -1})
	})
	return ctx.Err() == nil && !errors.Is(err, zk.ErrNotEmpty)
}
