package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/sequence"
)

// readers is how many nodes are read at a time, where several must be.
const readers = 32

// order returns the contenders among the children of a lock node, the first in
// line first. Children that are none are left out, and so are those that come
// after own, if that is the name of one of them and not empty: whoever waits for
// those before has no need of an order among a thousand that came later.
//
// The order is that of the sequence numbers, which is the order of creation,
// until the counter of the parent reaches its end. There it sticks, and of all
// later nodes the zxid of their creation decides, at the price of a read each;
// nodes that are gone by then are left out. Before the end no number is given out
// twice, but Curator's write lock, when it is downgraded, lets a reader into its
// own place, by its own number: that comes right behind it.
func (b *engine) order(ctx context.Context, parent string, children []string, own string) ([]contender, error) {
	var line []contender
	me, known := parseContender(own)
	last := int64(0)
	for _, child := range children {
		c, ok := parseContender(child)
		if !ok {
			continue
		}
		last = max(last, c.seq)
		if !known || c.rank() <= me.rank() {
			line = append(line, c)
		}
	}
	if last >= sequence.Warn {
		b.warnSequence(parent, last)
	}
	slices.SortFunc(line, contender.compare)
	tied := ties(line)
	if len(tied) == 0 {
		return line, nil
	}
	nodes, err := b.readAll(ctx, parent, tied)
	if err != nil {
		return nil, err
	}
	czxids := make(map[string]int64, len(tied)) // 0: it is gone
	for _, c := range tied {
		czxids[c.name] = 0
		if stat := nodes[c.name].stat; stat != nil {
			czxids[c.name] = stat.Czxid
		}
	}
	line = slices.DeleteFunc(line, func(c contender) bool {
		czxid, read := czxids[c.name]
		return read && czxid == 0
	})
	slices.SortFunc(line, func(x, y contender) int {
		return cmp.Or(x.compare(y), cmp.Compare(czxids[x.name], czxids[y.name]))
	})
	return line, nil
}

// rank is the sequence number, or the end of the counter for all that are given
// out when it has been reached.
func (c contender) rank() int64 {
	if c.seq < 0 || c.seq >= sequence.Last {
		return sequence.Last
	}
	return c.seq
}

// compare is the order of two contenders as far as their names tell it.
func (c contender) compare(d contender) int {
	if n := cmp.Compare(c.rank(), d.rank()); n != 0 || c.rank() == sequence.Last {
		return n
	}
	switch shared := sequence.Shared(c.name); {
	case shared == sequence.Shared(d.name):
		return 0
	case shared:
		return 1
	}
	return -1
}

// ties returns those of a sorted line whose names do not tell their order.
func ties(line []contender) []contender {
	var tied []contender
	for i, c := range line {
		if (i > 0 && c.compare(line[i-1]) == 0) || (i+1 < len(line) && c.compare(line[i+1]) == 0) {
			tied = append(tied, c)
		}
	}
	return tied
}

// readAll reads nodes, several at a time. Those that are gone have no entry.
func (b *engine) readAll(ctx context.Context, parent string, line []contender) (map[string]read, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu    sync.Mutex
		nodes = make(map[string]read, len(line))
		wg    sync.WaitGroup
		slots = make(chan struct{}, readers)
	)
	for _, c := range line {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			path := parent + "/" + c.name
			node, err := b.link.get(ctx, path)
			switch {
			case err == nil:
				mu.Lock()
				nodes[c.name] = node
				mu.Unlock()
			case !errors.Is(err, zk.ErrNoNode):
				cancel(stepError("read", path, err))
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nodes, nil
}

// warnSequence tells the operator, once per lock, that its counter nears its
// end.
func (b *engine) warnSequence(parent string, seq int64) {
	b.mu.Lock()
	warned := b.warned[parent]
	b.warned[parent] = true
	b.mu.Unlock()
	if !warned {
		b.host.Logger().Warn("the sequence counter of a lock nears its end: re-create the znode while nobody uses the lock",
			"path", parent, "sequence", seq, "limit", sequence.Last)
	}
}
