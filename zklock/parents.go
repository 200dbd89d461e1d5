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
// reply was lost too (orphans.go): if the parent had more, another client uses it, and the parent stays. It also stays after a grant. A
// client that finds its parent deleted creates it again.

// createParents creates the znode of a lock, and the znodes above it that are missing, but not the chroot. The caller starts over.
func (e *engine) createParents(ctx context.Context, path string) error {
	err, above := e.createParent(ctx, path), slashpath.Dir(path)
	if errors.Is(err, zk.ErrNoNode) && above == e.paths.chroot {
		return zkconn.NoChroot(above)
	}
	if errors.Is(err, zk.ErrNoNode) {
		if err = e.createParents(ctx, above); err == nil {
			err = e.createParent(ctx, path)
		}
	}
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) { // a client or the server has removed the znode above
		return nil
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

// childrenOf returns how many children this client has created in a parent; false if the parent is not in e.made.
func (e *engine) childrenOf(path string) (int64, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, ok := e.made[path]
	return n, ok
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
	e.mu.Lock()
	none := len(e.made) == 0
	e.mu.Unlock()
	if none || e.link.Wire() == nil { // on the next connection the client tidies all parents: see newEngine
		return
	}
	e.tasks.Go(func(ctx context.Context) {
		for ; path != "/" && e.deleteParent(ctx, path); path = slashpath.Dir(path) {
		}
	})
}

// deleteParent deletes a parent of this client that is empty. It returns false if the parent may become empty later.
func (e *engine) deleteParent(ctx context.Context, path string) bool {
	if _, made := e.childrenOf(path); !made {
		return true
	}
	err := e.link.Retry(ctx, nil, func(*zkconn.Session) error {
		if err := e.link.Sync(ctx, path); err != nil {
			return err
		}
		node, err := e.link.Get(ctx, path)
		if err != nil {
			return err
		}
		orphaned := e.orphans.expects(path) // a child may be this client's though it is not counted yet
		switch children, made := e.childrenOf(path); {
		case !made: // it had a grant
			return nil
		case nextNumber(node.Stat) <= children:
			return e.link.Transact(ctx, "delete parent", path, &zk.DeleteRequest{Path: path, Version: -1})
		case orphaned:
			return zk.ErrNotEmpty
		}
		return nil // another client uses it
	})
	if ctx.Err() != nil || errors.Is(err, zk.ErrNotEmpty) {
		return false
	}
	e.mu.Lock()
	delete(e.made, path)
	e.mu.Unlock()
	return true
}
