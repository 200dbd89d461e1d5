package zkconn

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/jute"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// Session is one ZooKeeper session.
//
// Each server that resumes the session negotiates its timeout anew, and the leader counts by the new one. But the leader may
// return to an earlier timeout: a late table of the former server still has it, and a new leader begins with the first one.
// So the lease, and all that has to be done before it ends, goes by the shortest timeout that the session has had.
type Session struct {
	ID    int64
	Lease *driver.Lease

	shortest atomic.Pointer[zktimes.Times]

	// Guarded by the link's mutex.
	password []byte
	grown    bool // the timeout has been too long for the lease to be renewed: the session is to end
}

// Times returns the times of the shortest timeout that was negotiated for this session.
func (s *Session) Times() *zktimes.Times { return s.shortest.Load() }

// greeted takes in a ConnectResponse, before anything else on the connection counts, and returns the times of the session. id is 0 if the
// session that the client asked for is over. asked is when the client sent the ConnectRequest.
func (l *Link) greeted(w *Wire, id int64, password []byte, granted *zktimes.Times, asked driver.Instant) (*zktimes.Times, error) {
	if id == 0 {
		l.sessionOver(w)
		return granted, nil
	}
	timeout := granted.Session
	l.mu.Lock()
	begins := l.session == nil
	if begins && (l.wire != w || l.ending) || !begins && l.session.ID != id {
		l.mu.Unlock()
		l.sessionOver(w)
		return nil, errors.New("the server gives a session that was not asked for, or not on this connection any more")
	}
	l.refusals, l.usedLast = 0, l.host.Now()
	l.times = granted
	if begins {
		l.session = &Session{ID: id, Lease: driver.NewLease(l.host, timeout, driver.ErrSessionExpired)}
		l.session.shortest.Store(granted)
	}
	s := l.session
	s.password, s.grown = password, s.grown || timeout > s.Times().Longest && !l.config.AnyAnswer
	l.mu.Unlock()
	if timeout < s.Times().Session {
		s.shortest.Store(granted)
	}
	switch {
	case !begins:
		s.Lease.Limit(asked, timeout) // resuming the session renews nothing yet: see trust
	case timeout != l.config.SessionTimeout.Truncate(time.Millisecond):
		l.tasks.Go(func(context.Context) { // a log handler may call the client, and this is the reader of the connection
			l.host.Logger().Warn("the servers grant another session timeout than was asked for",
				"asked", l.config.SessionTimeout, "granted", timeout)
		})
	}
	if begins || l.config.AnyAnswer {
		s.Lease.Renew(asked)
	}
	return s.Times(), nil
}

// sessionOver is called when a server says on connection w that the session is over: it has expired, or the client has ended it. The
// next connection begins a new session.
func (l *Link) sessionOver(w *Wire) {
	l.mu.Lock()
	s := l.session
	if l.wire != w || s == nil {
		l.mu.Unlock()
		return
	}
	l.session, l.refusals, l.lastZxid = nil, 0, 0
	l.shutLocked()
	if l.ending {
		l.noMore()
	}
	l.mu.Unlock()
	s.Lease.End(driver.ErrSessionExpired)
	for _, watch := range l.watches.all(nil) {
		l.watches.finish(watch, zk.EventNotWatching, nil)
	}
}

// passwordBytes is the length of a session's password.
const passwordBytes = 16

// connectRequest returns the request for a session: the present one, or a new one.
//
// A server that has seen less than the client closes the connection, and the client finds another one. If all servers do that
// for longer than the session can last, their data was lost or replaced: then the client says that it has seen nothing.
func (l *Link) connectRequest() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, zxid, timeout, password := int64(0), l.lastZxid, l.config.SessionTimeout, make([]byte, passwordBytes)
	if s := l.session; s != nil {
		id, timeout, password = s.ID, s.Times().Session, s.password
		if l.refusals >= 2*max(len(l.servers), 1) && l.host.Now().Sub(l.usedLast) > 2*timeout {
			zxid = 0
		}
	}
	return jute.Frame(func(e *jute.Encoder) {
		e.Int32(0)
		e.Int64(zxid)
		e.Int32(int32(timeout.Milliseconds()))
		e.Int64(id)
		e.Bytes(password)
	})
}

// answered takes in a reply on connection w, and the moment at which the reply renews the lease; zero for none. A late reply on a former
// connection may belong to another history of the servers.
func (l *Link) answered(w *Wire, r request, zxid int64, shows proof, renewed driver.Instant) {
	l.mu.Lock()
	s := l.session
	switch {
	case l.wire != w:
		s = nil
	case r.op != 0 && zxid > 0: // not of a ping
		l.lastZxid = zxid
	}
	if r.creation != nil && shows == written {
		r.creation.czxid = zxid
	}
	if shows > nothing && l.failures > 0 {
		l.failures = 0
		for _, s := range l.servers {
			if s.at != "" {
				s.cause = nil
			}
		}
	}
	l.mu.Unlock()
	if s != nil && !renewed.IsZero() {
		s.Lease.Renew(renewed)
	}
}
