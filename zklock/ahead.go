package zklock

import (
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A waiter may be granted the lock when it knows that every node before its own is gone. It
// hears of its predecessor by a watch. To have the rest known by then, it looks ahead: it
// watches the node before its predecessor too, and when that goes, lists the queue while the
// predecessor still holds the lock. So the predecessor's deletion is the grant.
//
// Not even that list is needed where these two are the only ones before it, or where they are
// not both of other clients: whoever is granted the lock knows that all before it are gone, and
// none of them returns.

// waiters are the nodes of a client that wait, so that those behind them can learn of
// their grants.
type waiters struct {
	mu     strict.Mutex[strict.Waiters]
	byPath map[string]*waiter
}

// waiter is one of them.
type waiter struct{ granted atomic.Bool }

// joinWaiters makes this contender known as one that waits. Who shares the lock is not: it
// may be granted that beside others before it.
func (c *contender) joinWaiters() {
	if c.waiter != nil || c.req.Mode.Shared {
		return
	}
	c.waiter = new(waiter)
	ws := &c.engine.waiters
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.byPath[c.path()] = c.waiter
}

// leaveWaiters says how that ended.
func (c *contender) leaveWaiters(granted bool) {
	if c.waiter == nil {
		return
	}
	c.waiter.granted.Store(granted)
	c.waiter = nil
	ws := &c.engine.waiters
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.byPath, c.path())
}

func (ws *waiters) at(path string) *waiter {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.byPath[path]
}

// outlook is what a waiter knows of the nodes before its own. It keeps few names, as there may
// be a thousand waiters.
type outlook struct {
	last   string  // its predecessor
	beyond string  // the node before that; "" if there is none, or it need not be watched
	alone  bool    // nothing but the predecessor is before it, as far as is known by now
	beside bool    // who shares the lock may hold it, and the predecessor waits itself
	pair   bool    // nothing but the predecessor and the one beyond is
	mate   *waiter // of a waiter of this client that has one of the two; nil if there is none

	beyondWatch *zkconn.Watch   // the last one on the node beyond; nil if there was none
	beyondEnds  <-chan struct{} // closed when it has ended; nil if nothing more is to be heard of that node
}

// lookAhead returns what is known of those that block a contender, of whom there is at least
// one. (What is said here of nodes before one's own is meant of those.) It looks beyond the
// predecessor only to one that goes before the predecessor is granted the lock, so not to one
// that shares it.
func (c *contender) lookAhead(line []entry) *outlook {
	n := len(line)
	o := &outlook{last: line[n-1].name, alone: n == 1}
	if n == 1 {
		return o
	}
	beyond := line[n-2].name
	if o.mate = c.engine.waiters.at(c.parent + "/" + o.last); o.mate == nil && !sequence.Shared(beyond) {
		o.beyond = beyond
		o.pair = n == 2 && !c.mayReturn(beyond)
		o.mate = c.engine.waiters.at(c.parent + "/" + o.beyond)
	}
	return o
}

// watchBeyond watches the node before the predecessor.
func (c *contender) watchBeyond(o *outlook) {
	o.beyondWatch = c.engine.link.Watch(c.engine.tasks.Context(), c.parent+"/"+o.beyond, zkconn.WatchData)
	o.beyondEnds = o.beyondWatch.Gone
}

// beyondEnded is called when the watch on the node before the predecessor has ended. It returns errStartOver if the
// queue has to be listed again.
func (c *contender) beyondEnded(o *outlook) error {
	o.beyondEnds = nil
	switch w := o.beyondWatch; {
	case w.Why == zk.EventNodeDeleted:
		if o.alone = o.pair || o.mateGranted(); !o.alone {
			return errStartOver
		}
	case w.Why == zk.EventNodeDataChanged: // it is there still
		c.watchBeyond(o)
	case w.Refused() == nil:
		return errStartOver
	default: // it may not be read; to wait for the predecessor is enough
	}
	return nil
}

// mateGranted reports whether the nodes before a mate's are known to be gone. Its own is,
// when that is heard. That alone would prove nothing: it may have given up.
func (o *outlook) mateGranted() bool { return o.mate != nil && o.mate.granted.Load() }
