package zklock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// siblings are the names in the queue as they were listed once.
type siblings struct {
	done  chan struct{} // closed when names is set
	names []string      // nil if they could not be listed
}

// whyGone returns why a node that was not found is gone, as far as is known.
// A reclaim shows in the write that came before the deletion, and in the node of the client that
// reclaims. The write alone does not tell: a client that asks for the lock writes too, and another
// may delete the node after that. A client that is missing in the list that went out with the read
// may have joined the queue between the two.
//
// A contender that was not watching when the write was made, since it had not begun to or was cut
// off, knows only that somebody has deleted the node. So does one that is cut off before the list
// is there, as the end of a hold does not wait for the next connection. In another session a
// missing node says nothing: it has gone with its own session.
func (o *ownNode) whyGone(ctx context.Context) error {
	o.mu.Lock()
	var s *siblings
	written := o.unseen != nil && !o.mine.has(o.unseen.reported)
	if written {
		s = o.unseen.names
	}
	o.mu.Unlock()
	reclaimed := written && o.engine.link.InSession(o.sess) && (s != nil && o.reclaimer(ctx, s) || o.reclaimer(ctx, o.list()))
	switch {
	case !o.engine.link.InSession(o.sess):
		return driver.ErrSessionExpired
	case reclaimed:
		return driver.ErrReclaimed
	}
	return driver.ErrBroken
}

// list lists the queue. It goes out together with the read that follows a write, and so
// keeps nobody waiting for longer than that.
func (o *ownNode) list() *siblings {
	s := &siblings{done: make(chan struct{})}
	link := o.engine.link
	if !o.engine.tasks.Go(func(ctx context.Context) {
		defer close(s.done)
		_ = link.Retry(ctx, nil, func(*zkconn.Session) (err error) {
			s.names, err = link.Children(ctx, dir(o.path))
			return err
		})
	}) {
		close(s.done)
	}
	return s
}

// reclaimer reports whether another client that reclaims under the same owner name is in
// the queue, by a list that it waits for.
func (o *ownNode) reclaimer(ctx context.Context, s *siblings) bool {
	o.engine.link.Await(ctx, s.done)
	select {
	case <-s.done:
	default:
		return false
	}
	return slices.ContainsFunc(s.names, func(name string) bool {
		return marked(name, o.owner) && !o.engine.markedBySelf(name)
	})
}

// whyDeleted is whyGone for a node whose watch has reported its deletion. If that was an
// event, and not that the read which was to set the watch found no node, the node was
// there after all writes before.
func (o *ownNode) whyDeleted() error {
	o.mu.Lock()
	if v := o.view; !errors.Is(v.watch.Failure(), zk.ErrNoNode) {
		o.seenLocked(v.unseen)
	}
	o.mu.Unlock()
	return o.whyGone(o.engine.tasks.Context())
}
