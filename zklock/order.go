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
// line first. Children that are none are left out. So may be those that come
// after own, if that is the name of one of them and not empty: whoever waits for
// those before has no need of an order among a thousand that came later.
//
// The order is that of the sequence numbers, which is the order of creation,
// until the counter of the parent reaches its end: there it sticks, and all
// later nodes tie. Then, and wherever two nodes tie, the zxid of their creation
// decides, at the price of a read each; nodes that are gone by then are left
// out.
func (b *backend) order(ctx context.Context, parent string, children []string, own string) ([]contender, error) {
	var line []contender
	me, known := parseContender(own)
	last, stuck := int64(0), false
	for _, child := range children {
		c, ok := parseContender(child)
		if !ok {
			continue
		}
		last = max(last, c.seq)
		stuck = stuck || beyond(c.seq)
		if !known || c.seq <= me.seq {
			line = append(line, c)
		}
	}
	if known && stuck { // a sequence tells nothing
		return b.order(ctx, parent, children, "")
	}
	if last >= sequence.Warn {
		b.warnSequence(parent, last)
	}
	slices.SortFunc(line, func(x, y contender) int { return cmp.Compare(x.seq, y.seq) })
	if !ambiguous(line) {
		return line, nil
	}
	nodes, err := b.readAll(ctx, parent, line)
	if err != nil {
		return nil, err
	}
	line = slices.DeleteFunc(line, func(c contender) bool { return nodes[c.name].stat == nil })
	slices.SortFunc(line, func(x, y contender) int {
		return cmp.Compare(nodes[x.name].stat.Czxid, nodes[y.name].stat.Czxid)
	})
	return line, nil
}

// beyond reports whether a sequence number is one that is given out when the
// counter has reached its end.
func beyond(seq int64) bool { return seq < 0 || seq >= sequence.Last }

// ambiguous reports whether sequence numbers do not tell the order of a line
// that is sorted by them.
func ambiguous(line []contender) bool {
	for i, c := range line {
		if beyond(c.seq) || (i > 0 && c.seq == line[i-1].seq) {
			return true
		}
	}
	return false
}

// readAll reads nodes, several at a time. Those that are gone have no entry.
func (b *backend) readAll(ctx context.Context, parent string, line []contender) (map[string]read, error) {
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
func (b *backend) warnSequence(parent string, seq int64) {
	b.mu.Lock()
	warned := b.warned[parent]
	b.warned[parent] = true
	b.mu.Unlock()
	if !warned {
		b.host.Logger().Warn("the sequence counter of a lock nears its end: re-create the znode while nobody uses the lock",
			"path", parent, "sequence", seq, "limit", sequence.Last)
	}
}
