package faultproxy

import (
	"context"
	"sync"
	"time"
)

const queueBytes = 16 << 20

type itemKind int

const (
	itemData  itemKind = iota
	itemEOF            // the source has closed its sending half
	itemReset          // the source is gone
	itemCut            // the proxy ends the connection here
)

// item is one thing in a pipe.
type item struct {
	kind itemKind
	data []byte
	due  time.Time // zero: at once
	done func()    // if not nil, called when the item has taken effect
}

// queue connects the reading and the writing goroutine of a pipe. It is bounded
// by bytes, not by items, so that an idle connection costs nothing.
type queue struct {
	mu    sync.Mutex
	items []item
	head  int
	bytes int

	// One token each; with one reader and one writer none is lost.
	filled  chan struct{}
	drained chan struct{}
}

func newQueue() *queue {
	return &queue{filled: make(chan struct{}, 1), drained: make(chan struct{}, 1)}
}

// push appends it, and waits for room if the queue is full. It returns false if
// ctx ended first.
func (q *queue) push(ctx context.Context, it item) bool {
	for {
		if ctx.Err() != nil {
			return false
		}
		q.mu.Lock()
		if q.bytes < queueBytes {
			q.items = append(q.items, it)
			q.bytes += len(it.data)
			q.mu.Unlock()
			notify(q.filled)
			return true
		}
		q.mu.Unlock()
		select {
		case <-q.drained:
		case <-ctx.Done():
			return false
		}
	}
}

// pop waits for the next item. It returns false if ctx has ended.
func (q *queue) pop(ctx context.Context) (item, bool) {
	for {
		if ctx.Err() != nil {
			return item{}, false
		}
		if it, ok := q.tryPop(); ok {
			notify(q.drained)
			return it, true
		}
		select {
		case <-q.filled:
		case <-ctx.Done():
			return item{}, false
		}
	}
}

func (q *queue) tryPop() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return item{}, false
	}
	it := q.items[q.head]
	q.items[q.head] = item{}
	q.head++
	q.bytes -= len(it.data)
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head >= 1024:
		// A queue that never empties must not grow for ever.
		q.items, q.head = append([]item(nil), q.items[q.head:]...), 0
	}
	return it, true
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
