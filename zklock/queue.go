package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

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

// order returns the entries among the children of a lock node, the first in
// line first. Children that are none or void are left out, and so are those that come
// after own, if that is the name of one of them and not empty: whoever waits for
// those before has no need of an order among a thousand that came later.
//
// The order is that of the sequence numbers, which is the order of creation,
// until the counter of the parent reaches its end. There it sticks, and of all
// later nodes the zxid of their creation decides, at the price of a read each;
// nodes that are gone by then are left out. Before the end no number is given out
// twice, but Curator's write lock, when it is downgraded, lets a reader into its
// own place, by its own number: that comes right behind it.
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
		if void(child) && child != own {
			continue
		}
		if !known || x.rank() <= me.rank() {
			line = append(line, x)
		}
	}
	if last >= sequence.Warn {
		e.warnSequence(parent, last)
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
	czxids := make(map[string]int64, len(tied)) // 0: it is gone
	for _, x := range tied {
		czxids[x.name] = 0
		if stat := nodes[x.name].Stat; stat != nil {
			czxids[x.name] = stat.Czxid
		}
	}
	line = slices.DeleteFunc(line, func(x entry) bool {
		czxid, read := czxids[x.name]
		return read && czxid == 0
	})
	slices.SortFunc(line, func(x, y entry) int {
		return cmp.Or(x.compare(y), cmp.Compare(czxids[x.name], czxids[y.name]))
	})
	return line, nil
}

// rank is the sequence number, or the end of the counter for all that are given
// out when it has been reached.
func (x entry) rank() int64 {
	if x.seq < 0 || x.seq >= sequence.Last {
		return sequence.Last
	}
	return x.seq
}

// compare is the order of two entries as far as their names tell it.
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

// readAll reads nodes, several at a time. Those that are gone have no entry.
func (e *engine) readAll(ctx context.Context, parent string, line []entry) (map[string]zkconn.Znode, error) {
	return readEach(ctx, parent, line, e.link.Get)
}

// readEach returns the first error, and begins no read after that, or after ctx has ended: the requests of those that have begun
// go on, though nobody waits for them, and must not be many.
func readEach(
	ctx context.Context, parent string, line []entry, read func(ctx context.Context, path string) (zkconn.Znode, error),
) (map[string]zkconn.Znode, error) {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu     sync.Mutex
		nodes  = make(map[string]zkconn.Znode, len(line))
		failed error
		wg     sync.WaitGroup
		slots  = make(chan struct{}, readers)
	)
	note := func(name string, node zkconn.Znode, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			nodes[name] = node
		case failed == nil && !errors.Is(err, zk.ErrNoNode):
			failed = err
			cancel()
		}
	}
	for _, x := range line {
		slots <- struct{}{}
		if reading.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			node, err := read(reading, parent+"/"+x.name)
			note(x.name, node, err)
		})
	}
	wg.Wait()
	if failed == nil && reading.Err() != nil && len(line) > 0 { // before the last was read, or just then
		failed = zkconn.StepError("read", parent, driver.ContextError(ctx))
	}
	if failed != nil {
		return nil, failed
	}
	return nodes, nil
}

// warnSequence tells the operator, once per lock, that its counter nears its
// end.
func (e *engine) warnSequence(parent string, seq int64) {
	e.mu.Lock()
	warned := e.warned[parent]
	e.warned[parent] = true
	e.mu.Unlock()
	if !warned {
		e.host.Logger().Warn("the sequence counter of a lock nears its end: re-create the znode while nobody uses the lock",
			"path", parent, "sequence", seq, "limit", sequence.Last)
	}
}
