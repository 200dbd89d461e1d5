package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// plan is what a waiter watches.
type plan struct {
	nodes  []entry
	until  int  // the wait is over when so many of the watched nodes are left
	enough bool // that is the grant; otherwise the queue is listed then
	chain  bool // the only node is watched for a write, too
	queue  bool // the list of the queue is watched, and no node
}

// mostCounted is the largest limit of permits that are counted.
const mostCounted = 8

// planFor returns the plan of a request that has to wait behind some nodes. Its line is a part of them, of which fewer than k must be left
// before the request is granted:
//
//	permit, with at least limit permits of that limit right before it    those permits; k is the limit
//	any other request                                                    the nodes that do not share with it; k is 1
//
// A short line is watched as a whole, and its deletions are counted. The deletion that leaves k-1 nodes is the grant if nothing but the
// line is in the way: no other node before a line of permits, and fewer permits than the limit beside a line of other nodes. Otherwise
// the queue is listed then. Of a long line the last k+1 nodes are watched, or three if that is more: the first of their deletions has the
// queue listed. A list of thousands may take longer than a hand-off, so two nodes would be too few.
//
// Where the limit is large, only the first waiter of a line watches for departures, by a watch on the queue. Every other waiter watches
// its predecessor, which writes to its node when it is granted the key. The waiter stood in the queue before the predecessor listed it
// the last time. If the write fails, the predecessor's call fails, and the waiter learns of the deletion of its node.
//
// A writer of Curator's read-write lock may leave a reader in its place, so the queue is listed when that writer goes.
func planFor(mode driver.Mode, ahead []entry, mostCounted int) plan {
	run := 0
	for run < len(ahead) && mode.SharesWith(modeOf(ahead[len(ahead)-1-run].name)) {
		run++
	}
	line, k, beside := strangers(mode, ahead), 1, 0
	if mode.Limit > 0 {
		beside = len(ahead) - len(line)
	}
	alone := mode.Limit == 0 || beside < mode.Limit
	if mode.Limit > 0 && run >= mode.Limit {
		line, k, alone = ahead[len(ahead)-run:], mode.Limit, run == len(ahead)
	}
	returns := slices.ContainsFunc(line, func(x entry) bool { return sequence.Downgrades(x.name) })
	switch {
	case k > mostCounted && run == k:
		return plan{queue: true}
	case k > mostCounted:
		return plan{nodes: line[len(line)-1:], chain: true}
	case alone && !returns && len(line) <= max(2*k-1, 3):
		return plan{nodes: line, until: k - 1, enough: true}
	}
	line = line[max(0, len(line)-max(k+1, 3)):]
	return plan{nodes: line, until: len(line) - 1}
}

// wait carries out the plan of a contender that has to wait.
type wait struct {
	*contender
	plan
	watches *zkconn.Lookout
	last    string  // the path of the last node that is watched, or of the queue
	ahead   []entry // the nodes before the contender's, if it watches the queue or there is one
}

// wait returns nil if the events that it has received are the grant, or errStartOver if the queue has to be listed again.
func (c *contender) wait(ctx context.Context, ahead []entry) error {
	w := &wait{contender: c, plan: planFor(c.req.Mode, ahead, c.engine.mostCounted), last: c.parent}
	w.nodes = slices.Clone(w.nodes) // thousands may wait, each for a few nodes of a long list
	if w.queue || len(ahead) == 1 {
		w.ahead = ahead
	}
	w.watches = c.engine.link.NewLookout(len(w.nodes) + 1)
	defer w.watches.End()
	if w.own.timer != nil && w.own.timer.Stop() { // it was first in line a moment ago, and is not any more
		w.own.begin()
	}
	if w.queue {
		w.watches.Watch(c.parent, zkconn.WatchChildren)
	}
	for _, x := range w.nodes {
		w.last = c.parent + "/" + x.name
		w.watches.Watch(w.last, zkconn.WatchData)
	}
	read := w.watches.Watches[w.last].Read
	patience := w.sess.Times().Doubt
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for len(w.watches.Watches) > w.until {
		var err error
		select {
		case fired := <-w.watches.Fired:
			err = w.fired(fired)
		case <-read:
			read = nil
			err = w.lastRead()
		case <-timer.C: // nodes have been in the way for long
			for path := range w.watches.Watches {
				w.engine.doubts.ask(path)
			}
			for _, x := range w.ahead {
				w.engine.doubts.ask(w.parent + "/" + x.name)
			}
			patience = min(2*patience, w.sess.Times().MaxDoubt)
			timer.Reset(patience)
		case <-w.own.gone:
			err = w.ended(w.own.cause)
		case <-ctx.Done():
			err = w.expired()
		}
		if err != nil {
			return err
		}
	}
	if !w.enough {
		return errStartOver
	}
	return nil
}

// fired is called when a watch has fired, or could not be set.
func (w *wait) fired(watch *zkconn.Watch) error {
	delete(w.watches.Watches, watch.Path)
	switch _, err := watch.Outcome(); {
	case watch.Why == zk.EventNodeDeleted:
		return nil
	case watch.Why == zk.EventNodeDataChanged && !w.chain: // the node still exists
		w.watches.Watch(watch.Path, zkconn.WatchData)
		return nil
	case err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, driver.ErrDisconnected) && w.engine.tasks.Context().Err() == nil:
		return err // the server does not let the client read the node
	}
	return errStartOver
}

// lastRead is called when the last node, or the queue, has been read. The read shows a change between the list and the watch.
func (w *wait) lastRead() error {
	watch := w.watches.Watches[w.last]
	if watch == nil {
		return nil
	}
	if ended, err := watch.Outcome(); !ended || err != nil {
		return nil
	}
	stat := watch.Node.Stat
	switch write := fmt.Sprint(w.last, " ", stat.Version); {
	case w.queue && stat.Pzxid > w.listed:
		return errStartOver
	case w.chain && stat.Version > 0 && w.announced != write:
		w.announced = write
		return errStartOver
	case !w.queue:
		w.engine.doubts.askIfOld(w.last, time.UnixMilli(stat.Ctime)) // callers may never wait until doubt asks
	}
	return nil
}

// expired returns the error of a wait that lasted until ctx ended. It names the holder if only one node is before the contender's.
func (w *wait) expired() error {
	info := driver.Info{Key: w.req.Key, Held: true}
	if watch := w.watches.Watches[w.last]; len(w.ahead) == 1 && watch != nil {
		if ended, err := watch.Outcome(); ended && err == nil {
			info, _ = infoOf(w.req.Key, w.ahead, map[string]zkconn.Znode{w.ahead[0].name: watch.Node})
		}
	}
	return driver.Held(info)
}
