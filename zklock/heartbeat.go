package zklock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// heartbeat proves to the connection that the session lives (see trust in zkconn). While the session holds locks, a heartbeat is a
// sync, and then a write that changes nothing: the check of one held node, each in turn. While the session holds no locks, a heartbeat
// is a sync alone, and rarer: the next creation, or a waiter's write before its grant, can then prove something.
type heartbeat struct {
	engine *engine

	mu    strict.Mutex[strict.Heartbeat]
	holds []*hold // the lock that was checked longest ago is first
	timer interface{ Stop() bool }
	due   time.Time
}

func (h *heartbeat) add(k *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = append(h.holds, k)
	if len(h.holds) > 1 {
		return
	}
	h.armLocked(backoff.Jittered(k.sess.Times().Heartbeat))
	if h.short(k.sess) {
		h.sendLocked(k.sess, true)
	}
}

func (h *heartbeat) remove(k *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = slices.DeleteFunc(h.holds, func(x *hold) bool { return x == k })
}

// short reports whether the lease may end before the next heartbeat but one has a reply. The lease of a session that has only waited
// is short at a grant, because its first heartbeats prove no more than the syncs before them.
func (h *heartbeat) short(sess *zkconn.Session) bool {
	t, left := sess.Times(), sess.Lease.Deadline().Sub(h.engine.host.Now().Mono)
	return left > 0 && left < t.Heartbeat+t.Enough // Lease.Live would end locks, and a mutex is locked
}

// armLocked has the next heartbeat come after a while.
func (h *heartbeat) armLocked(wait time.Duration) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.due = h.engine.host.Now().Mono.Add(wait)
	if h.engine.opts.Heartbeat >= 0 {
		h.timer = h.engine.host.AfterFunc(wait, h.beat)
	}
}

// beat runs when a heartbeat is due.
func (h *heartbeat) beat() {
	sess := h.engine.link.Session()
	if sess == nil || h.engine.tasks.Open().Err() != nil {
		return // the next session begins with one: see reopened
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.holds) > 0 {
		h.armLocked(sess.Times().Heartbeat)
	} else {
		h.armLocked(sess.Times().Idle)
	}
	h.sendLocked(sess, true)
}

// reopened sends a heartbeat out of turn on a new connection. If the session was resumed, that proves nothing without a write.
func (h *heartbeat) reopened(sess *zkconn.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armLocked(backoff.Jittered(sess.Times().Heartbeat)) // clients that reconnect together get different phases
	h.sendLocked(sess, len(h.holds) == 0)
}

// sendLocked makes a heartbeat in the background. Few are in flight at a time: a server that does not reply is left.
func (h *heartbeat) sendLocked(sess *zkconn.Session, sync bool) {
	if h.engine.opts.Heartbeat < 0 {
		return
	}
	h.engine.tasks.Go(func(ctx context.Context) {
		sent := h.engine.host.Now()
		err := h.send(ctx, sess, sync)
		h.mu.Lock()
		holding := len(h.holds) > 0
		if holding && h.short(sess) && h.engine.host.Now().Mono.Add(sess.Times().Again).Before(h.due) {
			h.armLocked(sess.Times().Again)
		}
		h.mu.Unlock()
		if ctx.Err() == nil && holding {
			if err != nil {
				h.engine.host.Logger().Debug("heartbeat failed", "error", err)
			}
			h.engine.host.Heartbeat("", sent, err)
		}
	})
}

// send makes one heartbeat. While the session holds locks, the client leaves a server that does not reply in time: another one
// may have a quorum, and enough of the session is left to get there.
func (h *heartbeat) send(ctx context.Context, sess *zkconn.Session, sync bool) error {
	link := h.engine.link
	once := func(_ context.Context, err error, _ <-chan struct{}) error { return err }
	return link.Retry(ctx, once, func(*zkconn.Session) error {
		w := link.Wire()
		limit := time.AfterFunc(sess.Times().Answer, func() {
			h.mu.Lock()
			holding := len(h.holds) > 0
			h.mu.Unlock()
			if holding {
				_ = w.Close()
			}
		})
		defer limit.Stop()
		if sync {
			if err := link.Sync(ctx, "/"); err != nil {
				return err
			}
		}
		for k := h.next(); k != nil; k = h.next() {
			limit.Reset(sess.Times().Answer)
			err := link.Check(ctx, k.path)
			switch {
			case errors.Is(err, zk.ErrNoNode): // it is being released, or its watch has not reported the deletion
				h.remove(k)
				k.finish(k.whyMissing(ctx))
			case errors.Is(err, zk.ErrNoAuth):
				h.remove(k)
				k.finish(err)
			default:
				return err
			}
		}
		return nil
	})
}

// next returns the lock that was checked longest ago; nil if there is none.
func (h *heartbeat) next() *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.holds) == 0 {
		return nil
	}
	k := h.holds[0]
	h.holds = append(h.holds[1:], k)
	return k
}
