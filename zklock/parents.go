package zklock

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A call may create the parent of its node and be refused or given up before it is granted anything. The server never removes a
// container that never had a child, and never a persistent znode. So the client deletes such a parent when it is empty. A
// client that finds its parent deleted creates it again. Parents that had a grant, or a child of another client, are left to the
// server.

// createParents creates the znode of a lock, and those above it, as far as they are
// missing, but not the chroot. The lowest is tried first: usually the others are there.
func (e *engine) createParents(ctx context.Context, path string) error {
	err := e.createParent(ctx, path)
	if errors.Is(err, zk.ErrNoNode) && dir(path) == e.paths.chroot {
		return zkconn.NoChroot(dir(path))
	}
	if errors.Is(err, zk.ErrNoNode) && dir(path) != "/" {
		if err := e.createParents(ctx, dir(path)); err != nil {
			return err
		}
		err = e.createParent(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver // removed again, by the server that found it empty: from the top
	}
	return err
}

// createParent creates one parent, and notes that, unless it is the root or above the root.
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

// countChild notes that this client creates a child.
func (e *engine) countChild(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.made[dir(path)]; ok {
		e.made[dir(path)] = n + 1
	}
}

// leaveParents is called at the end of each call of Acquire: parents that had a grant stay.
func (e *engine) leaveParents(lock string, granted bool) {
	var empty []string
	e.mu.Lock()
	for path := range e.made {
		switch ours := within(path, lock) || within(lock, path); {
		case ours && granted:
			delete(e.made, path)
		case ours:
			empty = append(empty, path)
		}
	}
	e.mu.Unlock()
	for _, path := range empty {
		e.tidy(path)
	}
}

// tidy deletes, in the background, a parent that this client has created and that is empty. It is called whenever that may be so.
func (e *engine) tidy(path string) {
	made := func() (children int64, ok bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		children, ok = e.made[path]
		return children, ok
	}
	if _, ok := made(); !ok || !e.link.IsOpen() { // else see reopened
		return
	}
	e.tasks.Go(func(ctx context.Context) {
		err := e.link.Retry(ctx, nil, func(*zkconn.Session) error {
			stat, err := e.link.Stat(ctx, path)
			if err != nil {
				return err
			}
			switch children, ok := made(); {
			case !ok || nextNumber(stat) > children: // it had a grant, or others use it
				return nil
			case stat.NumChildren > 0:
				return zk.ErrNotEmpty
			}
			return e.link.Transact(ctx, "delete parent", path, &zk.DeleteRequest{Path: path, Version: -1})
		})
		if errors.Is(err, zk.ErrNotEmpty) || ctx.Err() != nil {
			return // for now
		}
		e.mu.Lock()
		delete(e.made, path)
		e.mu.Unlock()
		if err == nil {
			e.tidy(dir(path))
		} else if !errors.Is(err, zk.ErrNoNode) {
			e.host.Logger().Debug("cannot delete an empty parent", "path", path, "error", err)
		}
	})
}

// tidyAll is tidy for all parents.
func (e *engine) tidyAll() {
	e.mu.Lock()
	all := slices.Collect(maps.Keys(e.made))
	e.mu.Unlock()
	for _, path := range all {
		e.tidy(path)
	}
}
