package zkconn

import (
	"bufio"
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/jute"
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
	opCloseSession    = -11

	xidEvent = -1
	xidPing  = -2
)

// Wire is one connection to a server, which go-zookeeper writes to and reads from. The wire reads along, for what go-zookeeper
// does not report: the session timeout, when requests were sent and replies read, and the zxid of each reply. It replaces
// go-zookeeper's request for a session by the link's.
//
// Frames begin with their length. Requests have xid int32, opcode int32; replies have xid int32, zxid int64, error int32. The
// first reply is the ConnectResponse: protocol int32, timeout int32 in milliseconds, session int64, password. go-zookeeper
// sends each request by one Write.
type Wire struct {
	net.Conn
	link   *Link
	server *server
	conn   *zk.Conn    // set before calls can be made
	closed atomic.Bool // conn.Close has been called

	Alive      context.Context // ends with the connection
	die        context.CancelFunc
	hasSession chan struct{} // closed when go-zookeeper has taken in the session
	closeSent  chan struct{} // closed when the end of the session has been sent

	mu      strict.Mutex[strict.Wire]
	opening driver.Instant // when the ConnectRequest was sent
	sent    map[int32]request
	pings   []driver.Instant // without a reply
	silence time.Duration    // how long to wait for the next frame

	// Only go-zookeeper's reader uses these.
	trust  *trust // nil before the ConnectResponse
	reader *bufio.Reader
	frame  []byte // what go-zookeeper has not read yet of the newest frame
	buffer []byte // of frames
	failed error  // why no further frame is read
}

// request is what the wire remembers of a request until its reply.
type request struct {
	sent     driver.Instant
	op       int32
	creation *creation // nil if it creates nothing, or for the application
	auth     *Auth     // the credential that it presents
}

func newWire(conn net.Conn, l *Link, s *server, first time.Duration) *Wire {
	w := &Wire{
		Conn:       conn,
		link:       l,
		server:     s,
		reader:     bufio.NewReader(conn),
		sent:       make(map[int32]request),
		silence:    first,
		hasSession: make(chan struct{}),
		closeSent:  make(chan struct{}),
	}
	w.Alive, w.die = context.WithCancel(context.Background())
	return w
}

func (w *Wire) Write(b []byte) (int, error) {
	select {
	case <-w.closeSent:
		// A server closes the connection after it has ended the session. Unread bytes would make that a reset, which can destroy the reply.
		return len(b), nil
	default:
	}
	w.mu.Lock()
	begins := w.opening.IsZero()
	if begins {
		w.opening = w.link.host.Now()
	}
	w.mu.Unlock()
	if begins {
		_, err := w.Conn.Write(w.link.connectRequest())
		return len(b), err
	}
	r := w.noteRequest(b)
	_, err := w.Conn.Write(b)
	if r.creation != nil {
		r.creation.sent()
	}
	switch {
	case err != nil:
		w.lose(err) // go-zookeeper hears of that as of the end of the connection, which its callers know
	case r.op == opCloseSession:
		close(w.closeSent) // go-zookeeper sends it once
	}
	return len(b), nil
}

// noteRequest notes a request that is about to be sent.
func (w *Wire) noteRequest(b []byte) (r request) {
	r.sent = w.link.host.Now()
	if len(b) < 12 {
		return r
	}
	d := jute.Decoder{Rest: b[4:]}
	xid := d.Int32()
	r.op = d.Int32()
	switch first := r.op; {
	case r.op == opSetAuth:
		d.Int32()
		r.auth = &Auth{d.String(), d.String()}
	case r.op == opMulti:
		first = d.Int32()
		d.Bool()
		d.Int32()
		fallthrough
	case r.op == opCreate:
		if first == opCreate {
			path := d.String()
			w.link.mu.Lock()
			r.creation = w.link.creations[path]
			w.link.mu.Unlock()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if xid == xidPing {
		w.pings = append(w.pings, r.sent)
	} else {
		w.sent[xid] = r
	}
	return r
}

// SetReadDeadline is called by go-zookeeper before it reads a frame, with two thirds of the session timeout or more. A server
// that falls silent is left sooner, while there is time to find another.
func (w *Wire) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		return nil // between the length and the rest of a frame
	}
	w.mu.Lock()
	limit := time.Now().Add(w.silence)
	w.mu.Unlock()
	if limit.Before(t) {
		t = limit
	}
	return w.Conn.SetReadDeadline(t)
}

// Close closes the connection, so that the link dials the next server.
func (w *Wire) Close() error {
	if w != nil {
		w.lose(net.ErrClosed)
	}
	return nil
}

// lose ends the connection for a reason. Before any request fails with it, calls wait, and the client reports that it is not
// connected. The next connection begins after that.
func (w *Wire) lose(err error) {
	w.link.mu.Lock()
	if w.link.wire == w {
		w.link.wire, w.link.lastErr = nil, err
		w.link.shutLocked()
	}
	w.link.mu.Unlock()
	_ = w.Conn.Close()
	w.die()
}
