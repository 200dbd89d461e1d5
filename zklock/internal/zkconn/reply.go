package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// Read hands go-zookeeper what the server sends, and reads along: what became of each request, and what that proves.
func (w *Wire) Read(b []byte) (n int, err error) {
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
	if w.sessionOver && w.rest == 0 {
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
func (w *Wire) scan(b []byte) error {
	for len(b) > 0 {
		if w.rest > 0 {
			n := min(w.rest, len(b))
			w.rest -= n
			b = b[n:]
			continue
		}
		want := 4
		switch {
		case w.have >= headerBytes:
			want = w.headerLength()
		case w.have >= 4:
			want = headerBytes
		}
		n := copy(w.header[w.have:want], b)
		w.have += n
		b = b[n:]
		if w.have == 4 {
			if err := w.checkLength(); err != nil {
				return err
			}
		}
		if w.have >= headerBytes && w.have == w.headerLength() {
			w.rest, w.have = int(binary.BigEndian.Uint32(w.header[:]))-(w.have-4), 0
			if err := w.noteFrame(); err != nil {
				return err
			}
		}
	}
	return nil
}

// headerBytes is how much of each frame is taken in, at least, with its length.
const headerBytes = 20

// mostHeader is how much, of a greeting: what is before the password, and that.
const mostHeader = 20 + passwordBytes

// headerLength is how much is taken in of the frame whose first headerBytes have been read: all of a greeting that there can be, and
// the kind of the first result of a transaction.
func (w *Wire) headerLength() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	size := int(binary.BigEndian.Uint32(w.header[:]))
	if w.trust == nil {
		return min(4+size, len(w.header))
	}
	if r := w.sent[int32(binary.BigEndian.Uint32(w.header[4:]))]; r.op == opMulti && size >= headerBytes {
		return headerBytes + 4
	}
	return headerBytes
}

// noteFrame takes in a frame of which the header has been read. It fails if
// go-zookeeper must not see it.
func (w *Wire) noteFrame() error {
	if w.greeted() {
		return w.noteReply(w.header[4:])
	}
	return w.noteGreeting(w.header[4:])
}

// noteGreeting takes in the ConnectResponse.
func (w *Wire) noteGreeting(h []byte) error {
	timeout, id := int32(binary.BigEndian.Uint32(h[4:])), int64(binary.BigEndian.Uint64(h[8:]))
	if id != 0 && timeout <= 0 { // go-zookeeper would panic
		return &strangerError{what: fmt.Sprintf("it does not speak ZooKeeper's protocol: it gives a session of %d ms", timeout)}
	}
	granted := w.link.config.Times(time.Duration(timeout) * time.Millisecond)
	w.mu.Lock()
	w.trust = newTrust(granted, w.opening)
	w.resumeBy(id, h[16:])
	opening := w.opening
	w.mu.Unlock()
	w.sessionOver = id == 0
	times := w.link.joined(w, id, granted, opening)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silence = times.Silence
	return nil
}

// noteReply takes in a reply, or an event.
func (w *Wire) noteReply(h []byte) error {
	now := w.link.host.Now()
	xid, zxid := int32(binary.BigEndian.Uint32(h)), int64(binary.BigEndian.Uint64(h[4:]))
	r, failed, known := w.requestOf(xid, h)
	if !known {
		return nil
	}
	if err := meanings[int32(binary.BigEndian.Uint32(h[12:]))]; errors.Is(err, driver.ErrDenied) {
		w.link.noteCause(w.server, fmt.Errorf("%s: %w", w.server, err))
	}
	if r.op == opSetWatches && failed { // go-zookeeper would go on as if nothing had happened
		return errNotRewatched
	}
	if !w.calm && xid != xidPing && r.op != opSetAuth {
		if !w.settle() {
			return net.ErrClosed
		}
		w.calm = true
	}
	shows := r.shows(failed)
	w.mu.Lock()
	renewed, ok := w.trust.note(exchange{r.sent, now}, shows)
	w.mu.Unlock()
	if w.link.config.AnyAnswer {
		renewed, ok = r.sent, shows != nothing
	}
	if !w.served && shows > nothing && !failed {
		w.served = true
		w.link.serves()
	}
	if ok {
		w.link.renew(w, renewed)
	}
	if r.op == opCloseSession {
		if failed { // also where the session is said to be over: see confirmOver
			return errNotEnded
		}
		close(w.closeConfirmed)
	}
	if r.create != "" && !failed {
		w.link.noteCreated(r.create, zxid)
	}
	return nil
}

// requestOf returns the request that a reply is for, and forgets it. known is false if there is none, as for an event.
func (w *Wire) requestOf(xid int32, h []byte) (r request, failed, known bool) {
	failed = int32(binary.BigEndian.Uint32(h[12:])) != 0
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
		// A transaction that is refused has no error in its header, but members that are errors.
		refused := int32(binary.BigEndian.Uint32(h[16:])) == -1
		failed = failed || (r.op == opMulti && refused)
	}
	return r, failed, known
}

// settle keeps a reply from go-zookeeper until it has renewed its watches: it renews them from
// the zxid of the last reply on, so a reply to a request that the application has sent over the
// same connection would hide what happened before it. Credentials it sends before its watches.
// It returns false if the connection ends before: the watches are renewed on the next one.
func (w *Wire) settle() bool {
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
