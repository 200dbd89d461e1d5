package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// readers is how many nodes are read at a time, where several must be.
const readers = 32

// entry is a node in the queue.
type entry struct {
	name string
	seq  int64
}

// parseEntry parses a child of a lock node; false for what does not stand
// in the queue.
func parseEntry(name string) (entry, bool) {
	seq, ok := sequence.Of(name)
	if !ok {
		return entry{}, false
	}
	return entry{name: name, seq: seq}, true
}

// order returns the entries among the children of a lock node, the first in line first. If own is the name of an entry, order leaves
// out the entries behind it.
//
// The order is that of the sequence numbers, which is the order of creation, until the counter of the parent reaches its end. There
// the counter sticks, and order reads each later node: the zxid of the creation decides, and nodes that are gone are left out. Before
// the end no two nodes have the same number, except a reader that Curator's write lock leaves in its place: see compare.
func (e *engine) order(ctx context.Context, parent string, children []string, own string) ([]entry, error) {
	var line []entry
	me, known := parseEntry(own)
	last := int64(0)
	for _, child := range children {
		x, ok := parseEntry(child)
		if !ok {
			continue
		}
		last = max(last, x.seq)
		if !known || x.rank() <= me.rank() {
			line = append(line, x)
		}
	}
	if last >= sequence.Warn {
		e.warned.Do(func() {
			e.host.Logger().Warn("the sequence counter of a lock nears its end: re-create the znode while nobody uses the lock",
				"path", parent, "sequence", last, "limit", sequence.Last)
		})
	}
	slices.SortFunc(line, entry.compare)
	tied := ties(line)
	if len(tied) == 0 {
		return line, nil
	}
	nodes, err := e.readAll(ctx, parent, tied)
	if err != nil {
		return nil, err
	}
	gone := make(map[string]bool, len(tied))
	for _, x := range tied {
		gone[x.name] = nodes[x.name].Stat == nil
	}
	line = slices.DeleteFunc(line, func(x entry) bool { return gone[x.name] })
	slices.SortFunc(line, func(x, y entry) int {
		if n := x.compare(y); n != 0 {
			return n
		}
		return cmp.Compare(nodes[x.name].Stat.Czxid, nodes[y.name].Stat.Czxid)
	})
	return line, nil
}

// rank is the sequence number; the end of the counter for a node that was created after the counter had reached it.
func (x entry) rank() int64 {
	if x.seq < 0 || x.seq >= sequence.Last {
		return sequence.Last
	}
	return x.seq
}

// compare is the order of two entries as far as their names tell it. Curator's write lock, when it is downgraded, leaves a reader in
// its place with its own number: the reader stands behind the writer.
func (x entry) compare(y entry) int {
	if n := cmp.Compare(x.rank(), y.rank()); n != 0 || x.rank() == sequence.Last {
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

// ties returns those of a sorted line whose names do not tell their order.
func ties(line []entry) []entry {
	var tied []entry
	for i, x := range line {
		if (i > 0 && x.compare(line[i-1]) == 0) || (i+1 < len(line) && x.compare(line[i+1]) == 0) {
			tied = append(tied, x)
		}
	}
	return tied
}

// readAll reads nodes, several at a time. Nodes that are gone have no entry. After the first error, or the end of ctx, it begins no
// further read.
func (e *engine) readAll(ctx context.Context, parent string, line []entry) (map[string]zkconn.Znode, error) {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([]zkconn.Znode, len(line))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(readers, len(line)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(line) && reading.Err() == nil; i = next.Add(1) - 1 {
				node, err := e.link.Get(reading, parent+"/"+line[i].name)
				if err == nil {
					all[i] = node
				} else if !errors.Is(err, zk.ErrNoNode) {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, driver.ContextError(ctx)
	}
	if err := context.Cause(reading); err != nil {
		return nil, err
	}
	nodes := make(map[string]zkconn.Znode, len(line))
	for i, x := range line {
		if all[i].Stat != nil {
			nodes[x.name] = all[i]
		}
	}
	return nodes, nil
}
