package zklock

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// A queue has nodes of two kinds, which their names tell: those that exclude all others, and
// those that share the lock with their own kind. All stand in one line, and who waits for
// whom is one rule: whoever stands before me and is not as ready to share as I am.

// role is what a node stands for.
type role int

const (
	asLock  role = iota // a lock, or a place in the queue for it
	asPlace             // a place in the queue of a semaphore
	asLease             // a permit
)

// prefix returns what the name of the contender's node begins with.
func (c *contender) prefix() string {
	names := c.engine.opts.Names
	switch {
	case c.role == asLease:
		return names.lease(c.guid)
	case c.role == asPlace && names != KazooNames:
		names = CuratorNames
	}
	return names.name(c.guid, c.req.Mode.Shared)
}

// parse parses the name of a node beside the contender's.
func (c *contender) parse(name string) (entry, bool) {
	if c.role == asLease {
		return parseLease(name)
	}
	return parseEntry(name)
}

// blockers returns those that a request for a lock waits for, of those that stand before it. Of a
// permit, these are all if they are as many as there are permits.
func blockers(mode driver.Mode, ahead []entry) []entry {
	if mode.Limit > 0 {
		if len(ahead) < mode.Limit {
			return nil
		}
		return ahead
	}
	if !mode.Shared || len(ahead) == 0 {
		return ahead
	}
	return slices.DeleteFunc(slices.Clone(ahead), func(x entry) bool { return sequence.Shared(x.name) })
}

func (c *contender) blockers(ahead []entry) []entry { return blockers(c.req.Mode, ahead) }

// mayReturn reports whether a node that goes may leave another in its place that blocks this
// contender: the reader of a Curator thread that was a writer.
func (c *contender) mayReturn(name string) bool {
	return !c.req.Mode.Shared && sequence.Downgrades(name)
}

// holders returns those of a line who hold the lock: the first, or all who share it before
// anybody else waits.
func holders(line []entry) []entry {
	if len(line) == 0 || !sequence.Shared(line[0].name) {
		return line[:min(len(line), 1)]
	}
	n := slices.IndexFunc(line, func(x entry) bool { return !sequence.Shared(x.name) })
	if n < 0 {
		n = len(line)
	}
	return once(line[:n])
}

// once leaves out of those who hold a key together whoever is there twice. A creation that was
// repeated, as the reply was lost, may have made two nodes, of which the client keeps the first
// and deletes the other.
func once(line []entry) []entry {
	seen := make(map[string]bool, len(line))
	var all []entry
	for _, x := range line {
		guid := guidIn(x.name)
		if guid == "" || !seen[guid] {
			all = append(all, x)
		}
		seen[guid] = true
	}
	return all
}

// A NamesError says that a lock was not taken because of the names of the nodes on its path:
// another program stands there, which does not see the nodes of this client, and so would
// take the lock beside it. A path belongs to programs that see each other's nodes; see
// [Options.Names]. It matches holdfast.ErrNames.
//
// Shared locks, permits, and all locks of a client with CuratorRWNames fail in this way. Another
// exclusive lock waits for all nodes that it finds, of whatever form, but fails so where others have
// a semaphore of which no limit is known.
type NamesError struct {
	Key   string
	Node  string // the name of one that does not fit; the path of what has the leases, for a lock where a semaphore is
	Names Names  // those of this client
}

// Error implements error.
func (e *NamesError) Error() string {
	return fmt.Sprintf("%q is in use by a program that passes over names of the form %q: it has the node %q", e.Key, e.Names, e.Node)
}

// Unwrap makes errors.Is match holdfast.ErrNames.
func (e *NamesError) Unwrap() error { return driver.ErrNames }

// fits refuses a lock on a path where somebody stands who would pass over its node.
func (e *engine) fits(req *driver.Request, ahead []entry) error {
	names := e.opts.Names
	if !req.Mode.Shared && names != CuratorRWNames {
		return nil
	}
	for _, x := range ahead {
		if !names.seenBy(sequence.FamilyOf(x.name)) {
			return &NamesError{Key: req.Key, Node: x.name, Names: names}
		}
	}
	return nil
}

// seenBy reports whether programs of a family see nodes of this form, as far as is known:
// kazoo sees Curator's if it was told to.
func (n Names) seenBy(f sequence.Family) bool {
	switch n {
	case CuratorRWNames:
		return f == sequence.CuratorRW
	case KazooNames:
		return f == sequence.Kazoo || f == sequence.Others || f == sequence.SharedMutexes
	}
	return f != sequence.CuratorRW && f != sequence.CuratorLatch
}
