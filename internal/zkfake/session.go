package zkfake

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// A session is the state of a session at the leader.
type session struct {
	id      int64
	timeout time.Duration // with which it began
	expires time.Time
	closing bool    // this leader has been asked to end it, or has let it expire, and says that it is over
	owner   *Member // at which its client is; nil if that is not known
}

// touch puts the end of a session off, of which the leader has heard over a connection with this timeout, or brings it nearer:
// SessionTrackerImpl.touchSession. It reports whether there is such a session. Ends are rounded up to ticks: ExpiryQueue.
func (e *Ensemble) touch(id int64, timeout time.Duration) bool {
	s := e.sessions[id]
	if s == nil || s.closing {
		return false
	}
	end := time.Now().Add(timeout)
	s.expires = end.Truncate(e.config.Tick).Add(e.config.Tick)
	return true
}

// expire ends the sessions that have not been heard of in time.
func (e *Ensemble) expire() {
	if !e.quorate() {
		if e.acts() == nil {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(e.sessions)) { // SessionTrackerImpl.run: the transaction that ends them waits for a majority
			if s := e.sessions[id]; !s.closing && !time.Now().Before(s.expires) {
				s.closing = true
				e.whenQuorate(func() { e.end(id, nil) })
			}
		}
		return
	}
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		if !time.Now().Before(e.sessions[id].expires) {
			e.end(id, nil)
		}
	}
}

// end ends a session, for a request to do so or by itself, and with it its ephemeral znodes.
func (e *Ensemble) end(id int64, rq *request) {
	if e.sessions[id] == nil {
		return
	}
	delete(e.sessions, id)
	t := &txn{kind: opCloseSession, session: id, request: rq}
	for _, path := range slices.Sorted(maps.Keys(e.leader().tree.ephemerals[id])) {
		t.ops = append(t.ops, op{kind: opDelete, path: path, version: -1})
	}
	e.commit(t)
}

// begin makes a session.
func (e *Ensemble) begin(m *Member, timeout time.Duration) int64 {
	e.lastID++
	e.sessions[e.lastID] = &session{id: e.lastID, timeout: timeout, owner: m}
	e.touch(e.lastID, timeout)
	return e.lastID
}

// resume takes a session to a member, with a timeout that has been negotiated again, and reports whether there is such a session.
func (e *Ensemble) resume(id int64, m *Member, timeout time.Duration) bool {
	s := e.sessions[id]
	if s == nil || s.closing {
		return false
	}
	s.owner = m
	return e.touch(id, timeout)
}

// password is the password of a session.
func password(id int64) []byte {
	p := make([]byte, 16)
	binary.BigEndian.PutUint64(p, uint64(id)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(p[8:], ^uint64(id))
	return p
}
