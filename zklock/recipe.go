package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// The recipe is that of ZooKeeper's documentation ("ZooKeeper Recipes and
// Solutions", Locks): create an ephemeral sequential node, list its siblings;
// the lowest has the lock, each other one watches the node just before its own.
// A guid in the name tells one's own node from others' when the reply to its
// creation was lost.

// errNotGranted is why an attempt at a grant has to begin again.
var errNotGranted = errors.New("not granted after all")

// Acquire implements [driver.Driver].
func (b *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	parent := b.paths.lock(req.Key)
	if !req.Wait && !req.Reclaim {
		if err := b.probe(ctx, parent, req); err != nil {
			return driver.Grant{}, err
		}
	}
	p := &place{b: b, req: req, parent: parent, data: encodeData(req.Owner, req.Data)}
	for {
		sess, err := b.link.ready(ctx, req.Retry)
		if err != nil {
			p.leave()
			return driver.Grant{}, err
		}
		p.enter(sess)
		grant, err := p.attempt(ctx)
		switch {
		case err == nil:
			return grant, nil
		case errors.Is(err, errNotGranted):
			// Something changed under way, for which nobody is to blame.
		case ctx.Err() != nil, !transient(err):
			p.leave()
			return driver.Grant{}, err
		default:
			if err := req.Retry(ctx, err, b.link.wake()); err != nil {
				p.leave()
				return driver.Grant{}, err
			}
		}
	}
}

// probe fails with a HeldError if anybody is in the queue, so that tries that
// are bound to fail create no nodes, over which other tries would fail.
func (b *engine) probe(ctx context.Context, parent string, req *driver.Request) error {
	for {
		if _, err := b.link.ready(ctx, req.Retry); err != nil {
			return err
		}
		info, err := b.describe(ctx, parent, req.Key, false)
		switch {
		case err == nil && info.Held:
			b.doubts.ifOld(parent+"/"+info.Grant, info.QueuedAt)
			return &driver.HeldError{Holder: info}
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("zookeeper: %w: %w", holdfast.ErrDisconnected, err)
		case !transient(err):
			return err
		}
		if err := req.Retry(ctx, err, b.link.wake()); err != nil {
			return err
		}
	}
}

// attempt goes on from wherever the place is: not in the queue, perhaps in the
// queue, or in it. It returns a grant, errNotGranted or a transient error if it
// is to be called again, or what has failed for good.
func (p *place) attempt(ctx context.Context) (driver.Grant, error) {
	none := driver.Grant{}
	children, err := p.join(ctx)
	if err != nil {
		return none, err
	}
	own := p.node
	if p.uncertain {
		own = "" // there may be another, which counts if it came before
	}
	line, err := p.b.order(ctx, p.parent, children, own)
	if err != nil {
		return none, p.waiting(ctx, err)
	}
	ahead, found := p.find(line)
	if !found {
		return none, p.vanished(ctx)
	}
	if p.req.Reclaim && !p.reclaimed && len(ahead) > 0 {
		removed, err := p.reclaim(ctx, ahead)
		if err != nil {
			return none, p.waiting(ctx, err)
		}
		p.reclaimed = true
		if removed {
			return none, errNotGranted
		}
	}
	if len(ahead) > 0 {
		if !p.req.Wait {
			return none, p.held(ctx, ahead[0])
		}
		p.req.Queued(len(ahead))
		// Only the name goes there: a thousand waiters that keep the names of a
		// thousand others, for as long as they wait, are a waste of memory.
		if err := p.wait(ctx, ahead[len(ahead)-1].name, len(ahead) == 1); err != nil {
			return none, err
		}
	}
	if err := p.prove(ctx); err != nil {
		return none, p.waiting(ctx, err)
	}
	return p.grant(ctx)
}

// wait waits for the node just before ours, by name, to go. It returns nil if
// that was alone before ours, and is gone, and cannot have left anybody in its place;
// errNotGranted when the queue has to be looked at again.
func (p *place) wait(ctx context.Context, name string, alone bool) error {
	before := p.parent + "/" + name
	w := p.b.link.watches.on(p.b.background, before)
	patience := firstDoubt * p.sess.timeout()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	read := w.read
	for waiting := true; waiting; {
		select {
		case <-w.gone:
			waiting = false
		case <-read:
			read = nil
			if w.err == nil {
				p.b.doubts.ifOld(before, time.UnixMilli(w.node.stat.Ctime))
			}
		case <-timer.C:
			p.b.doubts.about(before)
			patience = min(2*patience, mostDoubt*p.sess.timeout())
			timer.Reset(patience)
		case <-p.own.gone:
			return p.evicted()
		case <-ctx.Done():
			return p.outwaited(w, name, alone)
		}
	}
	if !alone || w.why != zk.EventNodeDeleted || sequence.Downgrades(name) {
		if err := w.failure(); err != nil && !errors.Is(err, zk.ErrNoNode) && !transient(err) && p.b.background.Err() == nil {
			return stepError("watch", before, err)
		}
		return errNotGranted
	}
	p.own.settle(ctx)
	return nil
}

// outwaited is the refusal of a wait that has lasted too long.
func (p *place) outwaited(w *watch, name string, alone bool) error {
	held := &driver.HeldError{Holder: driver.Info{Key: p.req.Key, Held: true}}
	select {
	case <-w.read:
		if alone && w.err == nil {
			held.Holder = infoOf(p.req.Key, name, w.node)
		}
	default:
	}
	return held
}

// vanished says what becomes of a place whose node is not in the queue any more,
// by an operator's hand, with its parent, or because it was reclaimed; the
// session is the same, or calls would have failed. Its own watch knows which,
// a moment later.
func (p *place) vanished(ctx context.Context) error {
	if p.own != nil {
		timer := time.NewTimer(p.sess.timeout() / 4)
		defer timer.Stop()
		select {
		case <-p.own.gone:
			return p.evicted()
		case <-timer.C: // a node that its client may not read
		case <-ctx.Done():
		}
	}
	p.lose()
	return errNotGranted
}

// evicted says what becomes of a waiter whose own node is gone.
func (p *place) evicted() error {
	cause := p.own.cause
	p.forget()
	if errors.Is(cause, holdfast.ErrReclaimed) {
		return cause
	}
	return errNotGranted
}

// prove makes sure, before a grant, that the session has some time left, since one
// that only waits makes no writes, and that the node is there, where there is
// doubt. It costs nothing right after the creation of the node, which was a write.
// Where a write has nothing to prove, because the process was stopped or answers are
// slow, it takes another sync, or several: what is answered now counts a window later.
func (p *place) prove(ctx context.Context) error {
	path := p.path()
	writes, doubtful := p.own.doubtful()
	for slow := false; ; slow = true {
		timeout := p.sess.timeout()
		if left := time.Until(p.sess.lease.Deadline()); left > timeout/6 && p.sess.lease.Live() && !doubtful {
			return nil
		}
		if slow {
			if err := p.b.link.sync(ctx, path); err != nil {
				return stepError("sync", path, err)
			}
		}
		switch err := p.b.link.check(ctx, path); {
		case err == nil && p.b.link.same(p.sess):
			p.own.survived(writes)
			doubtful = false
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return errNotGranted
		default:
			return stepError("check", path, err)
		}
		switch {
		case p.b.opts.HeartbeatPeriod < 0, slow && p.sess.lease.Live():
			return nil
		case slow:
			timer := time.NewTimer(timeout / 16)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
}

// grant makes a hold of a place that is the first in line.
func (p *place) grant(ctx context.Context) (driver.Grant, error) {
	if p.czxid == 0 {
		// The creation was repeated: only the node itself tells which of the
		// two creations it stems from, and whether this session made it.
		select {
		case <-p.own.seen:
		case <-p.own.gone:
		case <-ctx.Done():
			return driver.Grant{}, p.waiting(ctx, driver.ContextError(ctx))
		}
		p.own.mu.Lock()
		p.czxid = p.own.czxid
		p.own.mu.Unlock()
	}
	if p.czxid == 0 || !p.b.link.same(p.sess) {
		return driver.Grant{}, errNotGranted
	}
	if !p.own.hold(p.req.Lost) {
		return driver.Grant{}, p.evicted()
	}
	h := &hold{
		b:     p.b,
		sess:  p.sess,
		path:  p.path(),
		key:   p.req.Key,
		token: uint64(p.czxid),
		own:   p.own,
	}
	p.b.heartbeat.add(h)
	return driver.Grant{Token: h.token, Lease: p.sess.lease, Hold: h}, nil
}

// held gives up a try that came second, and says to whom.
func (p *place) held(ctx context.Context, first contender) error {
	path := p.parent + "/" + first.name
	node, err := p.b.link.get(ctx, path)
	switch {
	case err == nil:
		p.leave()
		p.b.doubts.ifOld(path, time.UnixMilli(node.stat.Ctime))
		return &driver.HeldError{Holder: infoOf(p.req.Key, first.name, node)}
	case errors.Is(err, zk.ErrNoNode):
		return errNotGranted
	}
	return p.waiting(ctx, stepError("read", path, err))
}

// waiting adds, to an error that ctx has caused, what was being waited for.
func (p *place) waiting(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, holdfast.ErrDisconnected) {
		return err
	}
	return fmt.Errorf("zookeeper: %w: %w", holdfast.ErrDisconnected, err)
}
