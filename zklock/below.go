package zklock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/sequence"
)

// Keys that are paths may be below each other, and what is below a key has names like those of a semaphore's znodes: the key
// "/app/leases" is where Curator has the permits of "/app", and 32 hexadecimal digits are the name of a permit of kazoo's. Permits are
// ephemeral, and the znodes of keys are not; and whoever has a lock, or waits for one, is told by its name. Only whether a permit is free is
// reckoned by all that is there, as Curator and kazoo do.

// isLock reports whether a node is that of a lock, or of a place in a queue.
func isLock(name string) bool {
	_, ok := parseEntry(name)
	return ok
}

func isNoLock(name string) bool { return !isLock(name) }

// noLocks leaves out what is none of a semaphore's.
func noLocks(line []entry) []entry {
	return slices.DeleteFunc(slices.Clone(line), func(x entry) bool { return isLock(x.name) })
}

// anyLease returns one of the permits among the children of a znode; "" if there is none. It reads those that may be keys; one that is
// gone by then is no permit any more.
func (e *engine) anyLease(ctx context.Context, parent string, children []string) (string, error) {
	var line []entry
	for _, name := range children {
		if _, numbered := sequence.OfLease(name); numbered {
			return name, nil // nobody has such keys
		}
		if isNoLock(name) {
			line = append(line, entry{name: name})
		}
	}
	for some := range slices.Chunk(line, readers) { // the first is one, most likely
		nodes, err := e.readAll(ctx, parent, some)
		if err != nil {
			return "", err
		}
		for _, x := range some {
			if node, there := nodes[x.name]; there && node.Stat.EphemeralOwner != 0 {
				return x.name, nil
			}
		}
	}
	return "", nil
}

// inTime returns the first of those who have made a lease, or are about to delete one that came too late: as many as there are permits.
// The znodes of keys take permits away, but only from those who came after them.
func (e *engine) inTime(ctx context.Context, s semaphore, line []entry, limit int) ([]entry, error) {
	if !slices.ContainsFunc(line, mayBeKey) {
		return line[:limit], nil
	}
	nodes, err := e.readAll(ctx, s.leases, line)
	if err != nil {
		return nil, err
	}
	var keys []int64 // when they were made
	line = slices.DeleteFunc(slices.Clone(line), func(x entry) bool {
		node, there := nodes[x.name]
		key := there && mayBeKey(x) && (isLock(x.name) || node.Stat.EphemeralOwner == 0)
		if key {
			keys = append(keys, node.Stat.Czxid)
		}
		return key
	})
	for i, x := range line {
		taken := i
		for _, czxid := range keys {
			if node, there := nodes[x.name]; there && czxid < node.Stat.Czxid {
				taken++
			}
		}
		if taken >= limit {
			return line[:i], nil
		}
	}
	return line, nil
}

// mayBeKey reports whether what counts as a permit may be the znode of a key, or of a lock on one.
func mayBeKey(x entry) bool { return x.seq == unnumbered }

// isUsed reports whether anybody has a permit of a semaphore, or waits for one.
func (e *engine) isUsed(ctx context.Context, s semaphore, u use) (bool, error) {
	if slices.ContainsFunc(u.places, isLock) {
		return true, nil
	}
	name, err := e.anyLease(ctx, s.leases, u.leases)
	return name != "", err
}

// found returns the semaphore that the children of a key's znode are a sign of, if they are. (As
// long as there is nothing for leases, nobody has one.)
func (e *engine) found(ctx context.Context, key string, children []string) (s semaphore, ok bool, err error) {
	var like []string
	for _, name := range children {
		if kazooLease(name) {
			like = append(like, name)
		}
	}
	path := e.paths.lock(key)
	first, err := e.anyLease(ctx, path, like)
	kazoo := first != ""
	return semaphoreAt(path, kazoo), kazoo || slices.Contains(children, leasesName), err
}

// noSemaphore refuses a lock on a key that is in use as a semaphore. It gets those children of the
// key's znode that do not stand in the queue, as they were after the lock's own node was there. Whoever takes a permit looks for
// locks after that too, so one of the two sees the other.
func (e *engine) noSemaphore(ctx context.Context, key string, others []string) error {
	s, ok, err := e.found(ctx, key, others)
	if !ok || err != nil {
		return err
	}
	u, err := e.survey(ctx, s)
	used := false
	if err == nil {
		used, err = e.isUsed(ctx, s, u)
	}
	if err == nil && !used {
		// Whoever has just left the queue for the lease that it made may be in neither list.
		var names []string
		names, err = e.link.Children(ctx, s.leases)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil {
			used, err = e.isUsed(ctx, s, use{leases: s.permits(names)})
		}
		if err == nil && !used {
			return nil
		}
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return errStartOver
	case err != nil:
		return err
	}
	limit, _ := u.limit()
	return e.isSemaphore(key, limit, s)
}
