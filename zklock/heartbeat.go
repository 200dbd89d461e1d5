package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// heartbeat writes to the quorum while the session holds locks: one write for
// all of them, which changes nothing and fires no watch. What it proves, and
// what that does to the lease, is for the wire to find out: see trust.
type heartbeat struct {
	b *backend

	mu      sync.Mutex
	holds   map[*hold]struct{}
	timer   interface{ Stop() bool } // nil while none is due
	beating bool                     // one is on its way
	stopped bool
}

func newHeartbeat(b *backend) *heartbeat {
	return &heartbeat{b: b, holds: make(map[*hold]struct{})}
}

func (h *heartbeat) add(k *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds[k] = struct{}{}
	h.armLocked(k.sess)
}

func (h *heartbeat) remove(k *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.holds, k)
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

// period is how often a session beats.
func (b *backend) period(timeout time.Duration) time.Duration {
	if p := b.opts.HeartbeatPeriod; p > 0 {
		return min(p, timeout/4)
	}
	return timeout / 6
}

func (h *heartbeat) armLocked(sess *session) {
	if h.timer != nil || h.stopped || len(h.holds) == 0 || h.b.opts.HeartbeatPeriod < 0 {
		return
	}
	h.timer = h.b.host.AfterFunc(h.b.period(sess.timeout), func() { h.beat(sess) })
}

// beat runs when a heartbeat is due.
func (h *heartbeat) beat(sess *session) {
	if now := h.b.link.current(); now != nil {
		sess = now
	}
	h.mu.Lock()
	h.timer = nil
	h.armLocked(sess)
	if h.beating || h.stopped || len(h.holds) == 0 {
		h.mu.Unlock()
		return
	}
	h.beating = true
	h.mu.Unlock()
	h.b.spawn(func(ctx context.Context) {
		h.send(ctx, sess)
		h.mu.Lock()
		h.beating = false
		h.mu.Unlock()
	})
}

// now sends a heartbeat out of turn: the session may have been resumed, and
// without a write that counts for nothing.
func (h *heartbeat) now() {
	sess := h.b.link.current()
	h.mu.Lock()
	idle := h.stopped || len(h.holds) == 0
	h.mu.Unlock()
	if sess == nil || idle || h.b.opts.HeartbeatPeriod < 0 {
		return
	}
	h.b.spawn(func(ctx context.Context) { h.send(ctx, sess) })
}

// send makes one write. A server that does not answer it in time is left: there
// may be one with a quorum, and enough of the session left to get there.
func (h *heartbeat) send(ctx context.Context, sess *session) {
	h.b.link.mu.Lock()
	up, w := h.b.link.up, h.b.link.wire
	h.b.link.mu.Unlock()
	if !up {
		return
	}
	limit := time.AfterFunc(sess.timeout/4, func() { h.b.link.drop(w) })
	defer limit.Stop()
	for range 3 { // the node that is named may be on its way out
		path := h.anyPath()
		if path == "" {
			return
		}
		sent := h.b.host.Now()
		err := h.b.link.check(ctx, path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case ctx.Err() != nil:
			return // the client closes
		case err != nil:
			err = stepError("check", path, err)
			h.b.host.Logger().Debug("heartbeat failed", "path", path, "error", err)
		}
		h.b.host.Heartbeat("", sent, err)
		return
	}
}

func (h *heartbeat) anyPath() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.holds {
		return k.path
	}
	return ""
}
