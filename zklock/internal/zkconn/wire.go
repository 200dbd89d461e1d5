package zkconn

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// The operations that matter here, as ZooKeeper numbers them (ZooDefs.OpCode).
const (
	opCreate          = 1
	opDelete          = 2
	opSetData         = 5
	opSync            = 9
	opMulti           = 14
	opCreateContainer = 19
	opSetAuth         = 100
	opSetWatches      = 101
	opCloseSession    = -11

	codeSessionExpired = -112

	xidEvent = -1
	xidPing  = -2
	xidAuth  = -4
)

// Wire is one connection to a server, as go-zookeeper uses it. It reads along,
// for what go-zookeeper does not report: the negotiated session timeout, when
// requests were sent and replies read, and the zxid of each reply. And it
// leaves a server that has fallen silent sooner than go-zookeeper would.
//
// Frames begin with their length. The first reply is the ConnectResponse:
// protocol int32, timeout int32 in milliseconds, session int64, password. Later
// requests begin with xid int32, opcode int32; replies with xid int32, zxid
// int64, error int32. go-zookeeper sends each request by one Write.
type Wire struct {
	net.Conn
	link     *Link
	server   *server
	greeting []byte // the ConnectRequest; from the answer on, what resumes the session that it gave

	mu      strict.Mutex[strict.Wire]
	opening driver.Instant // when the ConnectRequest was sent
	sent    map[int32]request
	pings   []driver.Instant // not answered yet
	trust   *trust           // nil before the ConnectResponse
	silence time.Duration    // how long to wait for the next frame

	// Of the frame that is being read. Only go-zookeeper's reader touches them.
	header   [4 + mostHeader]byte // see headerLength
	have     int                  // bytes of the header
	rest     int                  // bytes of the frame after the header
	instead  []byte               // of a frame that go-zookeeper is to read in the place of another; see readLength
	unwanted int64                // bytes of the frame that has been replaced
	calm     bool                 // settled need not be looked at any more
	served   bool                 // a request was answered

	watchesSet chan struct{} // closed when go-zookeeper renews its watches
	setOnce    sync.Once
	settled    chan struct{} // closed when that need not be waited for any longer
	settleOnce sync.Once

	closeSent      chan struct{} // closed when the end of the session has been sent
	closeConfirmed chan struct{} // closed when the server has confirmed it
	dead           chan struct{} // closed when the connection is
	died           sync.Once
	sessionOver    bool // the server says that the session has ended before
}

// request is what is remembered of a request until its reply.
type request struct {
	sent   driver.Instant
	op     int32
	create string // the path that is to be created
}

func newWire(conn net.Conn, l *Link, first time.Duration) *Wire {
	return &Wire{
		Conn:           conn,
		link:           l,
		server:         &server{},
		sent:           make(map[int32]request),
		silence:        first,
		watchesSet:     make(chan struct{}),
		settled:        make(chan struct{}),
		closeSent:      make(chan struct{}),
		closeConfirmed: make(chan struct{}),
		dead:           make(chan struct{}),
	}
}

func (w *Wire) Write(b []byte) (int, error) {
	select {
	case <-w.closeSent:
		// After the end of its session a server closes the connection, and if there is
		// something left that it has not read, its confirmation may be lost by that.
		return len(b), nil
	default:
	}
	r, first := w.noteRequest(b)
	if first {
		b = w.link.rewriteConnect(b)
		w.greeting = b
	}
	n, err := w.Conn.Write(b)
	if r.create != "" {
		w.link.noteSent(r.create)
	}
	switch {
	case err != nil && first:
		return n, err
	case err != nil:
		// go-zookeeper answers a request that fails here, and again when the connection has
		// ended; where it has no room for two answers, it stands still for ever.
		w.link.lost(w, err)
		_ = w.Close()
	case r.op == opCloseSession:
		close(w.closeSent) // go-zookeeper does so once at most
	}
	return len(b), nil
}

// noteRequest notes what is about to be sent. first says that it is the ConnectRequest, of which r says
// nothing.
func (w *Wire) noteRequest(b []byte) (r request, first bool) {
	now := w.link.host.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opening.IsZero() {
		w.opening = now
		return request{}, true
	}
	if len(b) < 12 {
		return request{}, false
	}
	xid := int32(binary.BigEndian.Uint32(b[4:]))
	r = request{sent: now, op: int32(binary.BigEndian.Uint32(b[8:])), create: creates(b)}
	switch {
	case xid == xidPing:
		w.pings = append(w.pings, now)
		return r, false
	case r.op == opSetWatches:
		switch left := w.link.renewals.Add(-1); {
		case left == 0:
			w.setOnce.Do(func() { close(w.watchesSet) })
		case left < 0: // one of several, for very many watches
			w.link.renewals.Add(1)
		}
	}
	w.sent[xid] = r
	return r, false
}

// creates returns the path that a request creates, or that the first member of a transaction
// creates; "" if there is none.
//
// A creation begins with its path. In a transaction, type int32, done byte and error int32
// stand before that.
func creates(b []byte) string {
	const header, member = 12, 9
	if len(b) < header {
		return ""
	}
	op, at := int32(binary.BigEndian.Uint32(b[8:])), header
	if op == opMulti && len(b) >= header+member {
		op, at = int32(binary.BigEndian.Uint32(b[header:])), header+member
	}
	if op != opCreate || len(b) < at+4 {
		return ""
	}
	n := int(binary.BigEndian.Uint32(b[at:]))
	if at += 4; n < 0 || n > len(b)-at {
		return ""
	}
	return string(b[at : at+n])
}

// SetReadDeadline is called by go-zookeeper before it reads a frame, with ten
// times or once two thirds of the session timeout. Waiting that long for a
// server that has fallen silent would leave no time to find another before the
// session ends.
func (w *Wire) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		return nil // between a header and its body: the limit stands
	}
	w.mu.Lock()
	limit := time.Now().Add(w.silence)
	w.mu.Unlock()
	if limit.Before(t) {
		t = limit
	}
	return w.Conn.SetReadDeadline(t)
}

func (w *Wire) Close() error {
	err := w.Conn.Close()
	w.link.lost(w, net.ErrClosed)
	w.die()
	return err
}

func (w *Wire) die() { w.died.Do(func() { close(w.dead) }) }

// awaitCloseSession waits for the server to confirm the end of the session, and, if there is
// no time for that, until it has been asked to.
func (w *Wire) awaitCloseSession(ctx context.Context) bool {
	select {
	case <-w.closeConfirmed:
	case <-w.dead:
	case <-ctx.Done():
		select {
		case <-w.closeSent:
		case <-w.dead:
		case <-time.After(sendTime):
		}
	}
	select {
	case <-w.closeConfirmed:
		return true
	default:
		return false
	}
}
