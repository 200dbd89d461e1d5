package zkconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// Session is one ZooKeeper session. A link has several in its life, one after
// the other.
//
// Its timeout is negotiated anew whenever it is resumed, with the limits of the
// server that resumes it, and from then on the leader counts by the new one. But
// it may still come to count by an earlier one: a table of the server before, with
// the session and the timeout that it had there, can be late on its way to the
// leader, which then moves the end of the session, to an earlier moment if that
// timeout is shorter; and a new leader begins with the timeout that the session was
// made with. So the lease goes by the shortest that the session has had, and all
// that has to be done before it ends does too.
type Session struct {
	ID    int64
	Lease *driver.Lease

	shortest atomic.Pointer[zktimes.Times]

	left     atomic.Bool
	greeting []byte // a ConnectRequest that resumes it, as of the last time that it was; guarded by the link's mutex
}

// Left reports whether the client has given the session up while the servers have not: its znodes are there
// until they do.
func (s *Session) Left() bool { return s.left.Load() }

// NewSession makes a session that begins.
func NewSession(id int64, lease *driver.Lease, t *zktimes.Times) *Session {
	s := &Session{ID: id, Lease: lease}
	s.shortest.Store(t)
	return s
}

// Times are those of the shortest timeout that was negotiated for this session.
func (s *Session) Times() *zktimes.Times { return s.shortest.Load() }

// joined is called by the reader of a connection when a server has answered: by
// a session, new or resumed, or by 0 for one that has ended. sent is when it was
// asked, granted the times of the timeout that it gave. Nothing else on the connection counts
// before that. It returns the times that the session goes by.
func (l *Link) joined(w *Wire, id int64, granted *zktimes.Times, sent driver.Instant) *zktimes.Times {
	timeout := granted.Session
	l.mu.Lock()
	l.refusals = 0
	var old *Session
	if l.session != nil && l.session.ID != id {
		old = l.saidOverLocked()
	}
	begun := id != 0 && l.session == nil
	if begun {
		l.forgetEndedLocked()
		l.session = NewSession(id, driver.NewLease(l.host, timeout, driver.ErrSessionExpired), granted)
	}
	if id != 0 {
		l.times = granted
	}
	if l.wire == w && id != 0 { // it may have been left already
		l.enterLocked(joined)
	}
	s := l.session
	if s != nil {
		s.greeting = w.greeting
	}
	leaves := false
	if s != nil && !begun {
		if timeout < s.Times().Session {
			s.shortest.Store(granted)
		}
		if leaves = timeout > s.Times().Longest && !l.config.AnyAnswer; leaves {
			l.leaveLocked(s, timeout)
		}
	}
	l.mu.Unlock()
	if s != nil && !begun {
		s.Lease.Limit(sent, timeout)
	}
	if old != nil {
		old.Lease.End(driver.ErrSessionExpired)
	}
	// That it was resumed proves nothing yet: see trust.
	if begun || (s != nil && l.config.AnyAnswer) {
		s.Lease.Renew(sent)
	}
	// A handler may ask the client, and this is its reader.
	if asked := l.config.SessionTimeout.Truncate(time.Millisecond); begun && timeout != asked {
		l.tasks.Go(func(context.Context) {
			l.host.Logger().Warn("the servers grant another session timeout than was asked for", "asked", asked, "granted", timeout)
		})
	}
	if leaves {
		l.tasks.Go(func(context.Context) {
			l.host.Logger().Info("the session timeout has grown: a new session begins")
		})
		l.Leave(w)
	}
	if s == nil {
		return granted
	}
	return s.Times()
}

const passwordBytes = 16

// resumeBy makes the greeting one that resumes the session which the answer gives: by its id, and its password. With the wire's mutex.
func (w *Wire) resumeBy(id int64, password []byte) {
	const session, length = 20, 28
	if len(w.greeting) < length+4+passwordBytes || binary.BigEndian.Uint32(password) != passwordBytes {
		return // there is none, as of a session that has ended
	}
	b := bytes.Clone(w.greeting)
	binary.BigEndian.PutUint64(b[session:], uint64(id))
	copy(b[length:], password[:4+passwordBytes])
	w.greeting = b
}

// rewriteConnect returns the ConnectRequest to be sent instead of go-zookeeper's. A new session is
// to last for as long as the user wants; go-zookeeper goes on asking for what it
// got last. And a session that it is not to resume is asked for with another
// password, which makes any server say that it is over.
//
// A server that has seen less than the client hangs up, so that the client finds another one. Where all
// do, for longer than the session can last, they have lost their data, or have been given older data:
// then the client says that it has seen nothing, and hears that its session is over.
//
// The request is: length int32, protocol int32, zxid int64, timeout int32, session
// int64, password.
func (l *Link) rewriteConnect(b []byte) []byte {
	const zxid, timeout, session, password = 8, 16, 20, 32
	if len(b) <= password {
		return b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b = bytes.Clone(b)
	id := int64(binary.BigEndian.Uint64(b[session:]))
	switch _, ends := l.toEnd[id]; {
	case id == 0:
		binary.BigEndian.PutUint32(b[timeout:], uint32(l.config.SessionTimeout.Milliseconds()))
	case ends:
		b[password] ^= 0xff
		binary.BigEndian.PutUint64(b[zxid:], 0)
	case l.outlivedLocked():
		binary.BigEndian.PutUint64(b[zxid:], 0)
	}
	return b
}

// turnedAway is called when a server has hung up instead of greeting.
func (l *Link) turnedAway() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals++
}

// outlivedLocked reports whether the client has seen more than the servers have: each of them has turned
// it away twice, and nobody can have kept the session alive.
func (l *Link) outlivedLocked() bool {
	return l.session != nil && l.refusals >= 2*max(len(l.servers), 1) && l.host.Now().Sub(l.joinedLast) > 2*l.session.Times().Session
}

// renew is called when the leader is known to have heard of the session after a moment.
func (l *Link) renew(w *Wire, at driver.Instant) {
	l.mu.Lock()
	s := l.session
	if l.wire != w {
		s = nil
	}
	l.mu.Unlock()
	if s != nil {
		s.Lease.Renew(at)
	}
}

// expired is called when the server has declared the session to be over.
func (l *Link) expired() {
	l.mu.Lock()
	s := l.saidOverLocked()
	l.mu.Unlock()
	if s != nil {
		s.Lease.End(driver.ErrSessionExpired)
	}
}
