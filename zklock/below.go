package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/sequence"
)

// Keys that are paths may be below each other, and what is below a key has names like those of a semaphore's znodes: the key
// "/app/leases" is where Curator has the permits of "/app", and 32 hexadecimal digits are the name of a permit of kazoo's. Permits are
// ephemeral, and the znodes of keys are not; and whoever has a lock, or waits for one, is told by its name. A program may have ephemeral
// znodes of its own below a key. Only whether a permit is free is reckoned by all that is there, as Curator and kazoo do.

// isLock reports whether a node is that of a lock, or of a place in a queue.
func isLock(name string) bool {
	_, ok := parseEntry(name)
	return ok
}

// mayBeLease reports whether a child of the znode with the leases may be one, by its name. That of a lease in the other form is not:
// kazoo's permits of the key "/app/leases" are no permits of "/app".
func (s semaphore) mayBeLease(name string) bool {
	if s.kazoo {
		return kazooLease(name)
	}
	_, ok := sequence.OfCuratorLease(name)
	return ok
}

// mayBeLeases leaves out what cannot be a lease.
func (s semaphore) mayBeLeases(line []entry) []entry {
	return slices.DeleteFunc(slices.Clone(line), func(x entry) bool { return !s.mayBeLease(x.name) })
}

// isPermit is mayBeLease for names that clients give to permits and to nothing else, with a guid and a number. Nobody has such keys.
func (s semaphore) isPermit(name string) bool {
	_, numbered := sequence.OfLease(name)
	return numbered && guidIn(name) != "" && s.mayBeLease(name)
}

// isPlace is that for a place in a queue.
func isPlace(name string) bool { return isLock(name) && guidIn(name) != "" }

// anyLease returns one of the permits among the children of the znode with the leases, or else one that may have been a permit and has gone
// since they were listed, or neither. Those in keys are known not to be permits; it adds those that it finds not to be.
func (e *engine) anyLease(ctx context.Context, s semaphore, children []string, keys map[string]bool) (there, gone string, err error) {
	return e.anyOf(ctx, s.leases, children, s.mayBeLease, s.isPermit, keys)
}

// anyOf returns one of the children of a znode that are somebody's nodes: that are so by their names, or that may be and are ephemeral.
// If there is none, it returns one that may have been and has gone.
func (e *engine) anyOf(
	ctx context.Context, parent string, children []string, may, are func(name string) bool, keys map[string]bool,
) (there, gone string, err error) {
	var line []entry
	for _, name := range children {
		switch {
		case void(name):
		case are(name):
			return name, "", nil
		case may(name) && !keys[name]:
			line = append(line, entry{name: name})
		}
	}
	for some := range slices.Chunk(line, readers) { // the first is one, most likely
		stats, err := e.statAll(ctx, parent, some)
		if err != nil {
			return "", "", err
		}
		for _, x := range some {
			switch stat, ok := stats[x.name]; {
			case !ok:
				gone = x.name
			case stat.EphemeralOwner != 0:
				return x.name, "", nil
			case keys != nil:
				keys[x.name] = true
			}
		}
	}
	return "", gone, nil
}

// inTime returns the first of those who have made a lease, or are about to delete one that came too late: as many as there are permits.
// The znodes of keys, and of programs, take permits away, but only from those who came after them. It returns false if what may be one has gone.
func (e *engine) inTime(ctx context.Context, s semaphore, line []entry, limit int) (first []entry, ok bool, err error) {
	if !slices.ContainsFunc(line, func(x entry) bool { return !s.isPermit(x.name) }) {
		return line[:limit], true, nil
	}
	stats, err := e.statAll(ctx, s.leases, line)
	if err != nil {
		return nil, false, err
	}
	var keys []int64 // when they were made
	for _, x := range line {
		stat, there := stats[x.name]
		switch {
		case s.isPermit(x.name):
			first = append(first, x)
		case !there && s.mayBeLease(x.name):
			return nil, false, nil
		case !there: // it has gone before the others were listed, as it were
		case !s.mayBeLease(x.name) || stat.EphemeralOwner == 0:
			keys = append(keys, stat.Czxid)
		default:
			first = append(first, x)
		}
	}
	for i, x := range first {
		taken := i
		for _, czxid := range keys {
			if stat, there := stats[x.name]; there && czxid < stat.Czxid {
				taken++
			}
		}
		if taken >= limit {
			return first[:i], true, nil
		}
	}
	return first, true, nil
}

// isUsed reports whether anybody has a permit of a semaphore, or waits for one.
func (e *engine) isUsed(ctx context.Context, s semaphore, u use) (bool, error) {
	name, _, err := e.anyOf(ctx, s.places, u.places, isLock, isPlace, nil)
	if name == "" && err == nil {
		name, _, err = e.anyLease(ctx, s, u.leases, nil)
	}
	return name != "", err
}

// found returns the semaphore that the children of a key's znode are a sign of, if they are. (As
// long as there is nothing for leases, nobody has one.) It fails with errStartOver if none of them is a permit of kazoo's, and one has gone
// that may have been: the next one has it by now, perhaps. Those that it has found not to be are in keys, for the next time: each of very
// many is read once, however often another goes meanwhile.
func (e *engine) found(ctx context.Context, key string, children []string, keys map[string]bool) (s semaphore, ok bool, err error) {
	path := e.paths.lock(key)
	first, gone, err := e.anyLease(ctx, semaphoreAt(path, true), children, keys)
	if gone != "" {
		return s, false, errStartOver
	}
	kazoo := first != ""
	return semaphoreAt(path, kazoo), kazoo || slices.Contains(children, leasesName), err
}

// inUse looks whether anybody uses a semaphore. It gets the children of the key's znode, and returns the one that is the sign of that; ""
// if nobody does. The limit is 0 if it is not known.
func (e *engine) inUse(ctx context.Context, s semaphore, children []string) (sign string, limit int, err error) {
	switch {
	case s.kazoo:
		var gone string
		sign, gone, err = e.anyLease(ctx, s, children, nil)
		sign = cmp.Or(sign, gone) // others wait for the permit, perhaps
	case slices.Contains(children, leasesName):
		sign = leasesName
	}
	if sign == "" || err != nil {
		return "", 0, err
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
			return "", 0, nil
		}
		if err == nil {
			used, err = e.isUsed(ctx, s, use{leases: s.permits(names, "")})
		}
	}
	switch {
	case errors.Is(err, zk.ErrNoNode): // the key's znode has gone meanwhile
		return "", 0, errStartOver
	case err != nil || !used:
		return "", 0, err
	}
	limit, _ = u.limit()
	return sign, limit, nil
}

// noSemaphore refuses a lock on a key that is in use as a semaphore, of either form. It gets those children of the
// key's znode that do not stand in the queue, as they were after the lock's own node was there. Whoever takes a permit looks for
// locks after that too, so one of the two sees the other.
func (e *engine) noSemaphore(ctx context.Context, key string, others []string) error {
	for _, kazoo := range []bool{true, false} {
		s := semaphoreAt(e.paths.lock(key), kazoo)
		sign, limit, err := e.inUse(ctx, s, others)
		if err != nil {
			return err
		}
		if sign != "" {
			return e.isSemaphore(key, limit, s)
		}
	}
	return nil
}
