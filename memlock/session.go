package memlock

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// beatsPerLease is how often the lease is renewed within its own length.
const beatsPerLease = 6

// A session is the store's view of one client between two expiries. The client's locks and contenders end with it. It is renewed only
// while it has contenders: an idle client needs no timer, once its session has expired. The store's mu guards all fields below
// lapsed.
type session struct {
	engine *engine
	lease  *driver.Lease // the client's view of the same
	lapsed chan struct{} // closed when the lease has passed in silence

	contenders map[*contender]struct{}
	until      time.Time
	timer      *time.Timer // of watch; nil if none is set
	beating    bool        // a heartbeat is scheduled
	over       bool
}

func (e *engine) newSession() *session {
	return &session{
		engine:     e,
		lease:      driver.NewLease(e.host, e.lease, driver.ErrSessionExpired),
		lapsed:     make(chan struct{}),
		contenders: make(map[*contender]struct{}),
	}
}

// addLocked adds a contender, and keeps the session alive from now on.
func (s *session) addLocked(c *contender) {
	s.contenders[c] = struct{}{}
	s.renewLocked()
	s.beatLocked()
}

// renewLocked restarts the lease. It does not reset the timer: watch does, when the timer fires early.
func (s *session) renewLocked() {
	s.until = time.Now().Add(s.engine.lease)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.engine.lease, s.watch)
	}
}

// beatLocked schedules the next heartbeat, if none is.
func (s *session) beatLocked() {
	if !s.beating {
		s.beating = true
		s.engine.host.AfterFunc(s.engine.lease/beatsPerLease, s.beat)
	}
}

// beat renews the session, as long as it has contenders.
func (s *session) beat() {
	e := s.engine
	sent := e.host.Now()
	e.store.mu.Lock()
	s.beating = false
	alive := !e.closed && !s.over && len(s.contenders) > 0
	arrived := alive && !e.cut
	if arrived {
		s.renewLocked()
	}
	if alive {
		s.beatLocked()
	}
	e.store.mu.Unlock()
	if arrived {
		s.lease.Renew(sent)
	}
}

// watch expires the session if it was not renewed for the length of the lease. An idle session expires, too: its client may still wait
// to release a grant that another client ended meanwhile.
func (s *session) watch() {
	s.engine.store.mu.Lock()
	defer s.engine.store.mu.Unlock()
	s.timer = nil
	if left := time.Until(s.until); left > 0 {
		s.timer = time.AfterFunc(left, s.watch)
		return
	}
	if !s.over {
		s.expireLocked()
	}
	close(s.lapsed)
}

// expireLocked ends the session and removes its contenders.
func (s *session) expireLocked() {
	s.over = true
	for c := range s.contenders {
		s.engine.store.removeLocked(c, driver.ErrSessionExpired)
		c.tellLocked()
	}
	s.engine.pushLocked(func() { s.lease.End(driver.ErrSessionExpired) })
}
