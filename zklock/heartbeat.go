package zklock

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// heartbeat sends what proves that the session lives; what a reply proves, and what that
// does to the lease, is found out by the connection (see trust). While
// the session holds locks, a heartbeat is a sync and, when that is answered, one
// write for all locks, which changes nothing and fires no watch. While it holds none,
// it is a sync alone, and rarer: the creation that comes next, or the write of a waiter
// before its grant, then has something to prove.
type heartbeat struct {
	engine *engine

	mu      strict.Mutex[strict.Heartbeat]
	holds   map[*hold]*list.Element  // of order
	order   *list.List               // first those that were looked for longest ago
	timer   interface{ Stop() bool } // nil before the first session
	due     time.Time                // when it fires
	beats   int                      // on their way
	asked   time.Time                // when a lock was asked about last
	stopped bool
}

// maxBeats may be on their way at a time: where an answer takes longer than the time
// between two heartbeats, waiting for it would make them too rare.
const maxBeats = 3

// maxChecked is how many locks a heartbeat looks for, of which it might not have heard that they are gone. One would do
// for the session. It looks for others if one is gone, or may not be read; after maxTries of these it only proves the session.
const (
	maxChecked = 16
	maxTries   = 5
)

func newHeartbeat(e *engine) *heartbeat {
	return &heartbeat{engine: e, holds: make(map[*hold]*list.Element), order: list.New()}
}

func (h *heartbeat) add(k *hold) {
	short := h.short(k.sess)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds[k] = h.order.PushBack(k)
	k.doubted = time.Now()
	if len(h.holds) > 1 || h.stopped || h.engine.opts.Heartbeat < 0 {
		return
	}
	h.armLocked(k.sess, backoff.Jittered) // for sooner
	if short {
		h.engine.tasks.Go(func(ctx context.Context) { h.send(ctx, k.sess, true) })
	}
}

// short reports whether the lease of a session may run out before the next heartbeat but one has been
// answered. That of one which has only waited is short at a grant, since waiting makes no
// writes, and the first heartbeats prove no more than the syncs before them.
func (h *heartbeat) short(sess *zkconn.Session) bool {
	t, lease := sess.Times(), sess.Lease
	return lease.Live() && lease.Deadline().Sub(h.engine.host.Now().Mono) < t.Heartbeat+t.Enough
}

// hurry has the next heartbeat made soon if the lease is short.
func (h *heartbeat) hurry(sess *zkconn.Session) {
	if !h.short(sess) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.holds) > 0 {
		h.armLocked(sess, func(time.Duration) time.Duration { return sess.Times().Again })
	}
}

func (h *heartbeat) remove(k *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.holds[k]; at != nil {
		h.order.Remove(at)
		delete(h.holds, k)
	}
}

// stop ends the heartbeats for good.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}

// armLocked sees to it that the next heartbeat comes in time. The first one of a row has a
// random phase, or clients that began together would beat together.
func (h *heartbeat) armLocked(sess *zkconn.Session, phase func(time.Duration) time.Duration) {
	if h.stopped || h.engine.opts.Heartbeat < 0 {
		return
	}
	wait := sess.Times().Heartbeat
	if len(h.holds) == 0 {
		wait = sess.Times().Idle
	}
	wait = phase(wait)
	due := h.engine.host.Now().Mono.Add(wait)
	if h.timer != nil {
		if !due.Before(h.due) {
			return
		}
		h.timer.Stop()
	}
	h.due = due
	h.timer = h.engine.host.AfterFunc(wait, func() { h.beat(sess) })
}

// beat runs when a heartbeat is due.
func (h *heartbeat) beat(sess *zkconn.Session) {
	if now := h.engine.link.Session(); now != nil {
		sess = now
	}
	h.mu.Lock()
	h.timer = nil
	h.armLocked(sess, func(d time.Duration) time.Duration { return d })
	if h.beats == maxBeats || h.stopped {
		h.mu.Unlock()
		return
	}
	h.beats++
	h.mu.Unlock()
	h.engine.tasks.Go(func(ctx context.Context) {
		h.send(ctx, sess, true)
		h.mu.Lock()
		h.beats--
		h.mu.Unlock()
	})
}

// reopened sends a heartbeat out of turn, on a new connection. If the session has been
// resumed, that counts for nothing without a write; a sync has nothing to show yet.
func (h *heartbeat) reopened(sess *zkconn.Session) {
	if h.engine.opts.Heartbeat < 0 {
		return
	}
	h.mu.Lock()
	h.armLocked(sess, backoff.Jittered)
	stopped, holding := h.stopped, len(h.holds) > 0
	h.mu.Unlock()
	if !stopped {
		h.engine.tasks.Go(func(ctx context.Context) { h.send(ctx, sess, !holding) })
	}
}

// send makes one heartbeat. While there are locks, a server that does not answer it in
// time is left: there may be one with a quorum, and enough of the session left to get
// there.
func (h *heartbeat) send(ctx context.Context, sess *zkconn.Session, sync bool) {
	defer h.hurry(sess)
	link := h.engine.link
	w := link.Usable()
	if w == nil {
		if err := link.Unconnected(ctx); err != nil && ctx.Err() == nil && h.holding() {
			h.engine.host.Heartbeat("", h.engine.host.Now(), err)
		}
		return
	}
	limited := func(f func() error) error {
		if h.holding() {
			limit := time.AfterFunc(sess.Times().Answer, func() { link.Leave(w) })
			defer limit.Stop()
		}
		return f()
	}
	sent := h.engine.host.Now()
	path := "/"
	var err error
	if sync {
		err = limited(func() error { return link.Sync(ctx, path) })
	}
	proved := false
	for try := 0; err == nil && !proved && try < maxTries; try++ {
		holds := h.oldest()
		if len(holds) == 0 {
			return
		}
		paths := make([]string, len(holds))
		for i, k := range holds {
			paths[i] = k.path
		}
		var first int // that is not as it should be
		err = limited(func() (err error) { first, err = link.CheckAll(ctx, paths); return err })
		path, proved = paths[first], err == nil
		switch k := holds[first]; {
		case errors.Is(err, zk.ErrNoNode): // it is being released; or it is not watched, and was deleted
			h.remove(k)
			k.own.finish(k.own.whyGone(ctx))
			err = nil
		case errors.Is(err, zk.ErrNoAuth):
			h.remove(k)
			k.own.finish(zkconn.StepError("check", k.path, zk.ErrNoAuth)) // err names the first of them
			err = nil
		}
	}
	if err == nil && !proved { // it will look for the others the next time, and goes by what is above one of them
		if k := h.any(); k != nil {
			path, err = above(k.path, func(path string) error {
				return limited(func() error { return link.Check(ctx, path) })
			})
		}
	}
	switch {
	case ctx.Err() != nil || !h.holding():
		return // the client closes, or there is nothing to be kept alive
	case err != nil:
		h.engine.host.Logger().Debug("heartbeat failed", "path", path, "error", err)
	default:
		h.doubt(sess)
	}
	h.engine.host.Heartbeat("", sent, err)
}

// above checks what is above a path, the nearest first, until something is there and may be read, or at last "/". It returns which
// that was.
func above(path string, check func(path string) error) (string, error) {
	for {
		path = dir(path)
		err := check(path)
		if path == "/" || !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
			return path, err
		}
	}
}

// doubt has the locks asked about in turn, one now and then: whether all has been heard of what was written to its znode.
func (h *heartbeat) doubt(sess *zkconn.Session) {
	if k := h.nextDoubted(sess); k != nil {
		if w := k.own.watching(); w != nil {
			h.engine.doubts.askOf(w)
		}
	}
}

// nextDoubted returns the lock that was asked about longest ago, or granted; nil if it is too early for another question.
func (h *heartbeat) nextDoubted(sess *zkconn.Session) (next *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.asked) < sess.Times().Doubt {
		return nil
	}
	h.asked = time.Now()
	for k := range h.holds {
		if next == nil || k.doubted.Before(next.doubted) {
			next = k
		}
	}
	if next != nil {
		next.doubted = h.asked
	}
	return next
}

func (h *heartbeat) holding() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.holds) > 0
}

// oldest returns the locks that were looked for longest ago, and takes them for looked for.
func (h *heartbeat) oldest() (holds []*hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range min(maxChecked, len(h.holds)) {
		at := h.order.Front()
		h.order.MoveToBack(at)
		holds = append(holds, at.Value.(*hold))
	}
	return holds
}

// any returns one of the locks; nil if there is none.
func (h *heartbeat) any() *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.holds {
		return k
	}
	return nil
}
