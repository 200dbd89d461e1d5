package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/jute"
)

// The wire bounds frames before it allocates memory for them: a port that is not a ZooKeeper server's can announce any length
// ("HTTP" is 1.2 GB). The last bound leaves room for servers with a larger jute.maxbuffer than 1 MB, and for the names of a
// quarter of a million waiters, which that setting does not limit.
const (
	leastGreeting = 20 // bytes of a ConnectResponse with no password
	mostGreeting  = 256
	leastReply    = 16 // bytes of a reply's header
	mostReply     = 16 << 20
)

// codeTooLong is the error code that the wire gives a reply that is too long. No server has it.
const codeTooLong = math.MinInt32 + 1

var errTooLong = fmt.Errorf("the reply is longer than the %d MiB that are read: a list of some hundred thousand znodes", mostReply>>20)

// Read hands go-zookeeper what the server sends, a frame after the wire has taken it in.
func (w *Wire) Read(b []byte) (n int, err error) {
	if len(w.frame) == 0 {
		err = w.readFrame()
	}
	if err != nil {
		if w.trust == nil {
			err = w.link.unanswered(w.server, err)
		}
		w.lose(err)
		return 0, err
	}
	n = copy(b, w.frame)
	w.frame = w.frame[n:]
	return n, nil
}

// readFrame reads a frame and takes it in.
func (w *Wire) readFrame() error {
	if w.failed != nil {
		return w.failed
	}
	size, err := w.readLength()
	if err != nil {
		return err
	}
	if cap(w.buffer) < 4+size {
		w.buffer = make([]byte, 4+size)
	}
	frame := w.buffer[:4+size]
	binary.BigEndian.PutUint32(frame, uint32(size))
	if _, err := io.ReadFull(w.reader, frame[4:]); err != nil {
		return err
	}
	if w.failed != nil {
		binary.BigEndian.PutUint32(frame[16:], uint32(codeTooLong&math.MaxUint32))
	}
	if w.trust != nil {
		err = w.noteReply(frame[4:])
	} else {
		err = w.noteGreeting(frame[4:])
	}
	if err == nil {
		w.frame = frame
	}
	return err
}

// readLength reads the length of a frame. A reply that is too long fails its own request, which is not repeated: go-zookeeper
// reads only its header, with an error. Then the connection ends, since what follows is not a frame.
func (w *Wire) readLength() (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(w.reader, b[:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint32(b[:])
	switch greeted := w.trust != nil; {
	case !greeted && (size < leastGreeting || size > mostGreeting):
		more, _ := w.reader.Peek(min(mostShown-len(b), w.reader.Buffered()))
		return 0, stranger(append(b[:], more...))
	case greeted && size < leastReply:
		return 0, fmt.Errorf("zookeeper: a reply of %d bytes, which is less than its header", size)
	case size > mostReply:
		w.failed = errTooLong
		return leastReply, nil
	}
	return int(size), nil
}

// noteGreeting takes in the ConnectResponse.
func (w *Wire) noteGreeting(b []byte) error {
	timeout, id := int32(binary.BigEndian.Uint32(b[4:])), int64(binary.BigEndian.Uint64(b[8:]))
	if id != 0 && timeout <= 0 { // go-zookeeper would panic
		return strangerError{fmt.Errorf("it does not speak ZooKeeper's protocol: it gives a session of %d ms", timeout)}
	}
	granted := w.link.config.Times(time.Duration(timeout) * time.Millisecond)
	password := make([]byte, passwordBytes)
	d := jute.Decoder{Rest: b[16:]}
	copy(password, d.Bytes())
	w.mu.Lock()
	opening := w.opening
	w.mu.Unlock()
	w.trust = &trust{window: granted.Window, opened: opening, grain: granted.Grain}
	times, err := w.link.greeted(w, id, password, granted, opening)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silence = times.Silence
	if w.link.config.AnyAnswer {
		w.silence = granted.Silence // without heartbeats, go-zookeeper's pings follow each other by the timeout that was granted
	}
	return nil
}

// noteReply takes in a reply, or an event.
func (w *Wire) noteReply(b []byte) error {
	now := w.link.host.Now()
	zxid, code := int64(binary.BigEndian.Uint64(b[4:])), int32(binary.BigEndian.Uint32(b[12:]))
	r, failed, known := w.requestOf(b)
	if !known {
		return nil
	}
	if err := meanings[code]; errors.Is(err, driver.ErrDenied) {
		w.link.noteCause(w.server, fmt.Errorf("%s: %w", w.server, err))
	}
	shows := r.shows(failed)
	renewed := w.trust.note(exchange{r.sent, now}, shows)
	if w.link.config.AnyAnswer && shows != nothing {
		renewed = r.sent
	}
	w.link.answered(w, r, zxid, shows, renewed)
	switch {
	case r.op == opCloseSession && (!failed || code == codeSessionExpired):
		w.link.sessionOver(w)
	case r.auth != nil && !failed:
		w.link.keepAuth(*r.auth)
	}
	return nil
}

// requestOf returns the request that a reply answers, and forgets it. known is false if there is none, as for an event.
func (w *Wire) requestOf(b []byte) (r request, failed, known bool) {
	xid := int32(binary.BigEndian.Uint32(b))
	failed = int32(binary.BigEndian.Uint32(b[12:])) != 0
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case xid == xidEvent:
	case xid == xidPing:
		if known = len(w.pings) > 0; known {
			r.sent = w.pings[0]
			w.pings = w.pings[1:]
		}
	default:
		r, known = w.sent[xid]
		delete(w.sent, xid)
		// The header of a refused transaction has no error. Its members are errors.
		refused := len(b) >= 20 && int32(binary.BigEndian.Uint32(b[16:])) == -1
		failed = failed || (r.op == opMulti && refused)
	}
	return r, failed, known
}

// shows returns what a request that was answered proves. A server answers credentials without noting the session, and refuses the
// requests of a session that is over.
func (r request) shows(failed bool) proof {
	if failed || r.op == opSetAuth {
		return nothing
	}
	switch r.op {
	case opCreate, opDelete, opSetData, opMulti, opCreateContainer:
		return written
	case opSync:
		return synced
	}
	return heard
}
