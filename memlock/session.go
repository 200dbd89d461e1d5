package memlock

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A session is the store's view of one client between two expiries. What it
// holds and where it waits ends with it. It is renewed, and can expire, only
// while it has places: an idle client needs no timer. All fields below lease
// are guarded by the store's mu.
type session struct {
	engine *engine
	lease  driver.Lease  // the client's view of the same
	lapsed chan struct{} // closed when the lease has passed in silence

	places map[*place]struct{}
	until  time.Time
	timer  *time.Timer
	over   bool
}

func (e *engine) newSession() *session {
	return &session{
		engine: e,
		lease:  e.host.NewLease(e.lease, holdfast.ErrSessionExpired),
		lapsed: make(chan struct{}),
		places: make(map[*place]struct{}),
	}
}

func (n *session) enterLocked(p *place) {
	n.places[p] = struct{}{}
	n.renewLocked()
	n.engine.beatLocked()
}

// leaveLocked leaves the timer alone: it stops by itself when nothing is left.
func (n *session) leaveLocked(p *place) { delete(n.places, p) }

// renewLocked begins the lease anew. The timer is not moved each time: when it
// fires early it is set again.
func (n *session) renewLocked() {
	n.until = time.Now().Add(n.engine.lease)
	if n.timer == nil {
		n.timer = time.AfterFunc(n.engine.lease, n.watch)
	}
}

// watch expires the session if nothing was heard for the length of the lease.
func (n *session) watch() {
	s := n.engine.store
	s.mu.Lock()
	defer s.mu.Unlock()
	n.timer = nil
	if n.over || len(n.places) == 0 {
		return
	}
	if left := time.Until(n.until); left > 0 {
		n.timer = time.AfterFunc(left, n.watch)
		return
	}
	n.expireLocked()
	close(n.lapsed)
}

// expireLocked ends the session: everything that it has goes to others.
func (n *session) expireLocked() {
	n.over = true
	for p := range n.places {
		n.engine.store.removeLocked(p, holdfast.ErrSessionExpired)
		if !p.taken {
			p.tellLocked()
		}
	}
	n.engine.pushLocked(func() { n.lease.End(holdfast.ErrSessionExpired) })
}
