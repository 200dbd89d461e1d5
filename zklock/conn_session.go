package zklock

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// session is one ZooKeeper session. A link has several in its life, one after
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
type session struct {
	id    int64
	lease driver.Lease

	shortest atomic.Pointer[zktimes.Times]

	// left is set when the client has given the session up while the servers have not: its nodes are there
	// until they do. See conn_leave.go.
	left atomic.Bool
}

// times are those of the shortest timeout that was negotiated for this session.
func (s *session) times() *zktimes.Times { return s.shortest.Load() }

// joined is called by the reader of a connection when a server has answered: by
// a session, new or resumed, or by 0 for one that has ended. sent is when it was
// asked, now the times of the timeout that it gave. Nothing else on the connection counts
// before that. It returns the times that the session goes by.
func (l *link) joined(w *wire, id int64, now *zktimes.Times, sent driver.Instant) *zktimes.Times {
	timeout := now.Session
	l.mu.Lock()
	l.refusals = 0
	old := l.session
	if old != nil && old.id != id {
		l.session = nil
	} else {
		old = nil
	}
	begun := id != 0 && l.session == nil
	if begun {
		l.forgetLocked()
		l.session = &session{id: id, lease: l.host.NewLease(timeout, holdfast.ErrSessionExpired)}
		l.session.shortest.Store(now)
	}
	if id != 0 {
		l.times = now
	}
	l.wire = w
	s := l.session
	leaves := false
	if s != nil && !begun {
		if timeout < s.times().Session {
			s.shortest.Store(now)
		}
		if leaves = timeout > s.times().Longest && l.opts.Heartbeat >= 0; leaves {
			l.leaveLocked(s, w, timeout)
		}
	}
	l.mu.Unlock()
	if s != nil && !begun {
		s.lease.Limit(sent, timeout)
	}
	if old != nil {
		old.lease.End(holdfast.ErrSessionExpired)
	}
	// That it was resumed proves nothing yet: see trust.
	if begun || (s != nil && l.opts.Heartbeat < 0) {
		s.lease.Renew(sent)
	}
	// A handler may ask the client, and this is its reader.
	if asked := l.opts.SessionTimeout.Truncate(time.Millisecond); begun && timeout != asked {
		l.tasks.Go(func(context.Context) {
			l.host.Logger().Warn("the servers grant another session timeout than was asked for", "asked", asked, "granted", timeout)
		})
	}
	if leaves {
		l.tasks.Go(func(context.Context) {
			l.host.Logger().Info("the session timeout has grown: a new session begins")
		})
		l.drop(w)
	}
	if s == nil {
		return now
	}
	return s.times()
}

// ask returns the ConnectRequest to be sent instead of go-zookeeper's. A new session is
// to last for as long as the user wants; go-zookeeper goes on asking for what it
// got last. And a session that has been left is asked for with another
// password, which makes any server say that it is over.
//
// A server that has seen less than the client hangs up, so that the client finds another one. Where all
// do, for longer than the session can last, they have lost their data, or have been given older data:
// then the client says that it has seen nothing, and hears that its session is over.
//
// The request is: length int32, protocol int32, zxid int64, timeout int32, session
// int64, password.
func (l *link) ask(b []byte) []byte {
	const zxid, timeout, session, password = 8, 16, 20, 32
	if len(b) <= password {
		return b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b = bytes.Clone(b)
	id := int64(binary.BigEndian.Uint64(b[session:]))
	switch _, left := l.left[id]; {
	case id == 0:
		binary.BigEndian.PutUint32(b[timeout:], uint32(l.opts.SessionTimeout.Milliseconds()))
	case left:
		b[password] ^= 0xff
		binary.BigEndian.PutUint64(b[zxid:], 0)
	case l.outlivedLocked():
		binary.BigEndian.PutUint64(b[zxid:], 0)
	}
	return b
}

// turnedAway is called when a server has hung up instead of greeting.
func (l *link) turnedAway() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusals++
}

// outlivedLocked reports whether the client has seen more than the servers have: each of them has turned
// it away twice, and nobody can have kept the session alive.
func (l *link) outlivedLocked() bool {
	return l.session != nil && l.refusals >= 2*max(len(l.servers), 1) && l.host.Now().Sub(l.down) > 2*l.session.times().Session
}

// renew is called when the leader is known to have heard of the session after a moment.
func (l *link) renew(w *wire, at driver.Instant) {
	l.mu.Lock()
	s := l.session
	if l.wire != w {
		s = nil
	}
	l.mu.Unlock()
	if s != nil {
		s.lease.Renew(at)
	}
}

// expired is called when the server has declared the session to be over.
func (l *link) expired() {
	l.mu.Lock()
	s := l.session
	l.session = nil
	l.mu.Unlock()
	if s != nil {
		s.lease.End(holdfast.ErrSessionExpired)
	}
}
