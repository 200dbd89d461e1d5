package zklock

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
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

// wire is one connection to a server, as go-zookeeper uses it. It reads along,
// for what go-zookeeper does not report: the negotiated session timeout, when
// requests were sent and replies read, and the zxid of each reply. And it
// leaves a server that has fallen silent sooner than go-zookeeper would.
//
// Frames begin with their length. The first reply is the ConnectResponse:
// protocol int32, timeout int32 in milliseconds, session int64, password. Later
// requests begin with xid int32, opcode int32; replies with xid int32, zxid
// int64, error int32. go-zookeeper sends each request by one Write.
type wire struct {
	net.Conn
	link     *link
	address  string
	greeting []byte // the ConnectRequest, for leaveLocked

	mu      sync.Mutex
	opening driver.Instant // when the ConnectRequest was sent
	sent    map[int32]request
	pings   []driver.Instant // not answered yet
	trust   *trust           // nil before the ConnectResponse
	silence time.Duration    // how long to wait for the next frame

	// Of the frame that is being read. Only go-zookeeper's reader touches them.
	header   [24]byte // the last 4 bytes only of the reply to a transaction
	have     int      // bytes of the header
	rest     int      // bytes of the frame after the header
	instead  []byte   // of a frame that go-zookeeper is to read in the place of another; see readLength
	unwanted int64    // bytes of the frame that has been replaced
	calm     bool     // settled need not be looked at any more
	served   bool     // a request was answered

	watchesSet chan struct{} // closed when go-zookeeper renews its watches
	setOnce    sync.Once
	settled    chan struct{} // closed when that need not be waited for any longer
	settleOnce sync.Once

	asked  chan struct{} // closed when the end of the session has been sent
	closed chan struct{} // closed when the server has confirmed it
	dead   chan struct{} // closed when the connection is
	died   sync.Once
	over   bool // the server says that the session has ended before
}

// request is what is remembered of a request until its reply.
type request struct {
	sent   driver.Instant
	op     int32
	create string // the path that is to be created
}

func newWire(conn net.Conn, l *link, first time.Duration) *wire {
	return &wire{
		Conn:       conn,
		link:       l,
		sent:       make(map[int32]request),
		silence:    first,
		watchesSet: make(chan struct{}),
		settled:    make(chan struct{}),
		asked:      make(chan struct{}),
		closed:     make(chan struct{}),
		dead:       make(chan struct{}),
	}
}

func (w *wire) Write(b []byte) (int, error) {
	select {
	case <-w.asked:
		// After the end of its session a server closes the connection, and if there is
		// something left that it has not read, its confirmation may be lost by that.
		return len(b), nil
	default:
	}
	first := w.noteRequest(b)
	if first {
		b = w.link.ask(b)
		w.greeting = b
	}
	n, err := w.Conn.Write(b)
	if path := creates(b); path != "" {
		w.link.noteSent(path)
	}
	switch {
	case err != nil && first:
		return n, err
	case err != nil:
		// go-zookeeper answers a request that fails here, and again when the connection has
		// ended; where it has no room for two answers, it stands still for ever.
		w.link.lost(w, err)
		_ = w.Close()
	case ends(b):
		close(w.asked) // go-zookeeper does so once at most
	}
	return len(b), nil
}

// ends reports whether a request is the end of the session.
func ends(b []byte) bool {
	return len(b) >= 12 && int32(binary.BigEndian.Uint32(b[8:])) == opCloseSession
}

// noteRequest notes what is about to be sent, and reports whether it is the
// ConnectRequest.
func (w *wire) noteRequest(b []byte) (first bool) {
	now := w.link.host.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opening.IsZero() {
		w.opening = now
		return true
	}
	if len(b) < 12 {
		return false
	}
	xid, op := int32(binary.BigEndian.Uint32(b[4:])), int32(binary.BigEndian.Uint32(b[8:]))
	switch {
	case xid == xidPing:
		w.pings = append(w.pings, now)
		return false
	case op == opSetWatches:
		w.setOnce.Do(func() { close(w.watchesSet) })
	}
	w.sent[xid] = request{sent: now, op: op, create: creates(b)}
	return false
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

func (w *wire) Read(b []byte) (n int, err error) {
	switch {
	case len(w.instead) > 0:
		n = copy(b, w.instead)
		w.instead = w.instead[n:]
	case len(b) == 4 && w.have == 0 && w.rest == 0 && w.greeted():
		n, err = w.readLength(b)
	default:
		n, err = w.Conn.Read(b)
	}
	if e := w.scan(b[:n]); e != nil {
		n, err = 0, e // go-zookeeper must not see the length
	}
	if w.over && w.rest == 0 {
		w.link.lost(w, zk.ErrSessionExpired)
		_ = w.Close() // go-zookeeper has read all that there is, and would leave it open
	}
	if err != nil {
		_ = w.Conn.Close() // or a write that is stuck would keep go-zookeeper from leaving
		if hungUp(err) && !w.greeted() {
			w.link.turnedAway()
		}
		w.link.lost(w, w.explain(err))
		w.die()
	}
	return n, err
}

// scan takes in bytes of the stream of replies, however they are cut. It fails for
// what cannot be one.
func (w *wire) scan(b []byte) error {
	for len(b) > 0 {
		if w.rest > 0 {
			n := min(w.rest, len(b))
			w.rest -= n
			b = b[n:]
			continue
		}
		want := 4
		if w.have >= 4 {
			want = headerBytes
		}
		if w.have >= headerBytes {
			want = len(w.header)
		}
		n := copy(w.header[w.have:want], b)
		w.have += n
		b = b[n:]
		if w.have == 4 {
			if err := w.checkLength(); err != nil {
				return err
			}
		}
		if w.have == len(w.header) || (w.have == headerBytes && !w.ofTransaction()) {
			w.rest, w.have = int(binary.BigEndian.Uint32(w.header[:]))-(w.have-4), 0
			if err := w.noteReply(); err != nil {
				return err
			}
		}
	}
	return nil
}

// headerBytes is how much of each frame is taken in.
const headerBytes = 20

// ofTransaction reports whether the frame answers a transaction, and goes on behind its header.
func (w *wire) ofTransaction() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.sent[int32(binary.BigEndian.Uint32(w.header[4:]))]
	return w.trust != nil && r.op == opMulti && binary.BigEndian.Uint32(w.header[:]) >= uint32(len(w.header)-4)
}

// noteReply takes in a frame of which the header has been read. It fails if
// go-zookeeper must not see it.
func (w *wire) noteReply() error {
	now := w.link.host.Now()
	h := w.header[4:]
	w.mu.Lock()
	if w.trust == nil {
		now := w.link.opts.times(time.Duration(int32(binary.BigEndian.Uint32(h[4:]))) * time.Millisecond)
		id := int64(binary.BigEndian.Uint64(h[8:]))
		w.trust = newTrust(now, w.opening)
		opening := w.opening
		w.mu.Unlock()
		w.over = id == 0
		now = w.link.joined(w, id, now, opening)
		w.mu.Lock()
		w.silence = now.Silence
		w.mu.Unlock()
		return nil
	}
	xid, zxid := int32(binary.BigEndian.Uint32(h)), int64(binary.BigEndian.Uint64(h[4:]))
	code := int32(binary.BigEndian.Uint32(h[12:]))
	failed := code != 0
	var r request
	known := true
	switch {
	case xid == xidEvent:
		known = false
	case xid == xidPing:
		if known = len(w.pings) > 0; known {
			r.sent = w.pings[0]
			w.pings = w.pings[1:]
		}
	default:
		r, known = w.sent[xid]
		delete(w.sent, xid)
		// A transaction that is refused has no error in its header, but members that are errors.
		refused := int32(binary.BigEndian.Uint32(h[16:])) == -1
		failed = failed || (r.op == opMulti && refused)
	}
	if !known {
		w.mu.Unlock()
		return nil
	}
	if r.op == opSetWatches && failed { // go-zookeeper would go on as if nothing had happened
		w.mu.Unlock()
		return errNotRewatched
	}
	if !w.calm && xid != xidPing && r.op != opSetAuth {
		w.mu.Unlock()
		if !w.settle() {
			return net.ErrClosed
		}
		w.calm = true
		w.mu.Lock()
	}
	shows := r.shows(failed)
	renewed, ok := w.trust.note(exchange{r.sent, now}, shows)
	if w.link.opts.Heartbeat < 0 {
		renewed, ok = r.sent, shows != nothing
	}
	w.mu.Unlock()
	if !w.served && shows > nothing && !failed {
		w.served = true
		w.link.serves()
	}
	if ok {
		w.link.renew(w, renewed)
	}
	if r.op == opCloseSession && (!failed || code == codeSessionExpired) {
		close(w.closed)
	}
	if r.create != "" && !failed {
		w.link.noteCreated(r.create, zxid)
	}
	return nil
}

// settle keeps a reply from go-zookeeper until it has renewed its watches: it renews them from
// the zxid of the last reply on, so a reply to a request that the application has sent over the
// same connection would hide what happened before it. Credentials it sends before its watches.
// It returns false if the connection ends before: the watches are renewed on the next one.
func (w *wire) settle() bool {
	select {
	case <-w.settled:
		return true
	case <-w.dead:
	case <-w.link.closing.Done():
	}
	return false
}

// shows returns what a request that was answered proves. A server answers credentials
// without noting the session.
func (r request) shows(failed bool) proof {
	switch {
	case r.op == opSetAuth:
		return nothing
	case failed:
		return heard
	}
	switch r.op {
	case opCreate, opDelete, opSetData, opMulti, opCreateContainer:
		return written
	case opSync:
		return synced
	}
	return heard
}

// SetReadDeadline is called by go-zookeeper before it reads a frame, with ten
// times or once two thirds of the session timeout. Waiting that long for a
// server that has fallen silent would leave no time to find another before the
// session ends.
func (w *wire) SetReadDeadline(t time.Time) error {
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

func (w *wire) Close() error {
	err := w.Conn.Close()
	w.link.lost(w, net.ErrClosed)
	w.die()
	return err
}

func (w *wire) die() { w.died.Do(func() { close(w.dead) }) }

// endsSession waits for the server to confirm the end of the session, and, if there is
// no time for that, until it has been asked to.
func (w *wire) endsSession(ctx context.Context) bool {
	select {
	case <-w.closed:
	case <-w.dead:
	case <-ctx.Done():
		select {
		case <-w.asked:
		case <-w.dead:
		case <-time.After(sendTime):
		}
	}
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}
