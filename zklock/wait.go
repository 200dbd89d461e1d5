package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// wait carries out the plan of a contender that has to wait.
type wait struct {
	*contender
	plan
	watches *zkconn.Lookout
	last    string  // the path of the last node that is watched, or of the queue
	ahead   []entry // the nodes before the contender's
}

// An announcement is a write to the node of a predecessor.
type announcement struct {
	path    string
	version int32
}

func (c *contender) newWait(ahead []entry) *wait {
	w := &wait{contender: c, plan: planFor(c.req.Mode, ahead, c.engine.mostCounted), last: c.parent, ahead: ahead}
	w.watches = c.engine.link.NewLookout(c.engine.tasks.Context(), len(w.nodes)+1)
	if w.queue {
		w.watches.Watch(c.parent, zkconn.WatchChildren)
	}
	for _, x := range w.nodes {
		w.last = c.parent + "/" + x.name
		w.watches.Watch(w.last, zkconn.WatchData)
	}
	return w
}

// run returns nil if the events that it has received are the grant, or errStartOver if the queue has to be listed again.
func (w *wait) run(ctx context.Context) error {
	defer w.watches.End()
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
		case <-timer.C:
			w.doubt()
			patience = min(2*patience, w.sess.Times().MaxDoubt)
			timer.Reset(patience)
		case <-w.own.gone:
			err = w.ownGone()
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
	w.own.settle(ctx)
	return nil
}

// fired is called when a watch has fired, or could not be set.
func (w *wait) fired(watch *zkconn.Watch) error {
	delete(w.watches.Watches, watch.Path)
	switch refused := watch.Refused(); {
	case watch.Why == zk.EventNodeDeleted:
		return nil
	case watch.Why == zk.EventNodeDataChanged && !w.chain: // the node still exists
		w.watches.Watch(watch.Path, zkconn.WatchData)
		return nil
	case refused != nil && w.engine.tasks.Context().Err() == nil:
		return refused
	}
	return errStartOver
}

// lastRead is called when the last node, or the queue, has been read. The read shows a change between the list and the watch.
func (w *wait) lastRead() error {
	watch := w.watches.Watches[w.last]
	if watch == nil || !watch.IsSet() {
		return nil
	}
	stat := watch.Node.Stat
	switch write := (announcement{w.last, stat.Version}); {
	case w.queue && stat.Pzxid > w.listed:
		return errStartOver
	case w.chain && stat.Version > 0 && w.announced != write:
		w.announced = write
		return errStartOver
	}
	return nil
}

// doubt asks the leader about nodes that have been in the way for long.
func (w *wait) doubt() {
	for path := range w.watches.Watches {
		w.engine.doubts.ask(path)
	}
	if w.queue {
		for _, x := range w.ahead {
			w.engine.doubts.ask(w.parent + "/" + x.name)
		}
	}
}

// expired returns the error of a wait that lasted until ctx ended. It names the holder if only one node is before the contender's.
func (w *wait) expired() error {
	if watch := w.watches.Watches[w.last]; len(w.ahead) == 1 && watch != nil && watch.IsSet() {
		return driver.Held(infoOf(w.req.Key, base(w.last), watch.Node))
	}
	return driver.Held(driver.Info{Key: w.req.Key, Held: true})
}

// announce writes to the contender's node if the next waiter watches the node to learn of this grant: see planFor. A waiter whose list
// showed this node as a waiter stood in the queue before this contender listed it the last time. If announce fails, the call
// fails, and the waiter learns of the deletion of the node.
func (c *contender) announce(ctx context.Context, h *hold) error {
	if c.req.Mode.Limit <= c.engine.mostCounted || !c.followed {
		return nil
	}
	err := h.SetData(ctx, c.req.Data)
	if errors.Is(err, driver.ErrLost) {
		return errStartOver
	}
	return err
}
