package zklock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// readers is how many nodes are read or deleted at a time, where several must be.
const readers = 32

// entry is a node in the queue.
type entry struct {
	name string
	seq  int64 // the number; sequence.Last for each node that was created after the counter had reached its end
}

// parseEntry parses a child of a lock's znode; false for a child that does not stand in the queue.
func parseEntry(name string) (entry, bool) {
	seq, ok := sequence.Of(name)
	if seq < 0 {
		seq = sequence.Last // up to ZooKeeper 3.5 the counter goes on below zero
	}
	return entry{name, seq}, ok
}

// order returns the entries among the children of a lock's znode, the first in line first: see sorted.
func (e *engine) order(ctx context.Context, parent string, children []string, own string) ([]entry, error) {
	line, err := sorted(children, own, func(tied []entry) (map[string]zkconn.Znode, error) { return e.readAll(ctx, parent, tied) })
	if n := len(line); n > 0 && line[n-1].seq >= sequence.Warn {
		e.warned.Do(func() {
			e.host.Logger().Warn("the sequence counter of a lock nears its end: re-create the znode while nobody uses the lock",
				"path", parent, "sequence", line[n-1].seq, "limit", sequence.Last)
		})
	}
	return line, err
}

// sorted returns the entries among some children in their order, without void ones. If own is the name of an entry, sorted keeps that
// entry, and leaves out the entries behind it.
//
// The order is that of the sequence numbers, which is the order of creation, until the counter of the parent reaches its end. There
// the counter sticks, and sorted reads each later node: the zxid of the creation decides, and nodes that are gone are left out. Before
// the end no two nodes have the same number, except a reader that Curator's write lock leaves in its place: see compare.
func sorted(children []string, own string, read func(tied []entry) (map[string]zkconn.Znode, error)) (line []entry, err error) {
	me, known := parseEntry(own)
	for _, child := range children {
		if n := len(child) - 10; known && me.seq < sequence.Last && n > 0 && child[n:] > own[len(own)-10:] {
			continue // ten digits tell that it is behind, where thousands may wait
		}
		if x, ok := parseEntry(child); ok && (!known || x.seq <= me.seq) && (child == own || !void(child)) {
			line = append(line, x)
		}
	}
	slices.SortFunc(line, entry.compare)
	var tied []entry // whose names do not tell their order
	for i, x := range line {
		if i > 0 && x.compare(line[i-1]) == 0 || i+1 < len(line) && x.compare(line[i+1]) == 0 {
			tied = append(tied, x)
		}
	}
	if len(tied) == 0 {
		return line, nil
	}
	nodes, err := read(tied)
	if err != nil {
		return nil, err
	}
	gone := make(map[string]bool, len(tied))
	for _, x := range tied {
		gone[x.name] = nodes[x.name].Stat == nil
	}
	line = slices.DeleteFunc(line, func(x entry) bool { return gone[x.name] })
	slices.SortFunc(line, func(x, y entry) int {
		if n := x.compare(y); n != 0 || x.name == y.name {
			return n
		}
		return cmp.Compare(nodes[x.name].Stat.Czxid, nodes[y.name].Stat.Czxid)
	})
	return line, nil
}

// compare is the order of two entries as far as their names tell it. Curator's write lock, when it is downgraded, leaves a reader in
// its place with its own number: the reader stands behind the writer.
func (x entry) compare(y entry) int {
	if n := cmp.Compare(x.seq, y.seq); n != 0 || x.seq == sequence.Last {
		return n
	}
	switch shared := sequence.Shared(x.name); {
	case shared == sequence.Shared(y.name):
		return 0
	case shared:
		return 1
	}
	return -1
}

// readAll reads nodes, several at a time. Nodes that are gone have no entry. After the first error, or the end of ctx, it begins no
// further read.
func (e *engine) readAll(ctx context.Context, parent string, line []entry) (map[string]zkconn.Znode, error) {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	nodes := make(map[string]zkconn.Znode, len(line))
	atOnce(reading, slices.Values(line), func(x entry) {
		node, err := e.link.Get(reading, parent+"/"+x.name)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			nodes[x.name] = node
		} else if !errors.Is(err, zk.ErrNoNode) {
			cancel(err)
		}
	})
	if ctx.Err() != nil {
		return nil, driver.ContextError(ctx)
	}
	return nodes, context.Cause(reading)
}

// atOnce calls f with each of all until ctx ends, and with as many as readers at the same time.
func atOnce[T any](ctx context.Context, all iter.Seq[T], f func(T)) {
	var calls sync.WaitGroup
	slots := make(chan struct{}, readers)
	for x := range all {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		calls.Go(func() {
			defer func() { <-slots }()
			f(x)
		})
	}
	calls.Wait()
}
