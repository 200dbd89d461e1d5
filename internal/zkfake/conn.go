package zkfake

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/internal/jute"
)

// A conn is a connection of a client, at its member: NIOServerCnxn.
type conn struct {
	member *Member
	wire   *Wire
	socket net.Conn
	in     *queue // from the client
	out    *queue // to the client

	greeted  bool // of read: the client has sent a ConnectRequest
	greeting bool // it has come
	met      loss // the loss of the request that arrives now
	session  int64
	timeout  time.Duration
	known    bool       // the client has shown credentials
	closed   bool       // the member has forgotten it; frames in flight to the client still arrive
	pending  []*request // in the order in which they came, and are answered
}

// read passes the frames of the client on, until the connection ends.
func (c *conn) read() {
	e := c.member.ensemble
	for {
		var size [4]byte
		_, err := io.ReadFull(c.socket, size[:])
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if err == nil {
			_, err = io.ReadFull(c.socket, body)
		}
		if err != nil {
			e.locked(func() { c.in.send(func() { e.locked(c.gone) }) })
			return
		}
		if !c.take(body) {
			return
		}
	}
}

// take passes a frame on. It reports false if the connection ends with it.
func (c *conn) take(frame []byte) bool {
	e := c.member.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	var met loss
	if c.greeted && len(frame) >= 8 {
		met = c.wire.meets(int32(binary.BigEndian.Uint32(frame[4:])))
	}
	c.greeted = true
	if met.answered > 0 {
		c.out.silence(met.answered)
	}
	if !met.ends || met.delivered {
		c.in.send(func() {
			e.locked(func() {
				c.met = met
				c.receive(frame)
				if met.answered > 0 {
					c.wire.link.holdRequests()
				}
			})
		})
	}
	if met.ends {
		c.sever()
	}
	return !met.ends
}

// sever ends the connection for the client. Frames that it has sent arrive.
func (c *conn) sever() {
	e := c.member.ensemble
	c.out.close()
	_ = c.socket.Close()
	c.in.send(func() { e.locked(c.gone) })
}

// arrange holds or opens both directions.
func (c *conn) arrange() {
	c.in.hold(c.wire.toServer || c.member.stalled)
	c.out.hold(c.wire.toClient || c.wire.silent)
}

// send sends a frame to the client.
func (c *conn) send(write func(e *jute.Encoder)) {
	if c.closed {
		return
	}
	b := jute.Frame(write)
	c.out.send(func() { _, _ = c.socket.Write(b) })
}

// tell reports an event to the client.
func (c *conn) tell(ev event) {
	if c.wire.eventless {
		return
	}
	c.send(func(e *jute.Encoder) {
		e.Int32(xidEvent)
		e.Int64(-1)
		e.Int32(0)
		e.Int32(int32(ev.what))
		e.Int32(stateConnected)
		e.String(ev.path)
	})
}

// hangUp ends the connection behind the frames in flight to the client.
func (c *conn) hangUp() {
	if c.closed {
		return
	}
	c.forget()
	c.out.send(func() { _ = c.socket.Close() })
}

// gone ends the connection at once. Frames in flight are lost.
func (c *conn) gone() {
	c.forget()
	delete(c.member.ensemble.conns, c)
	c.in.close()
	c.out.close()
	_ = c.socket.Close()
}

// forget has the member know nothing of the connection any more.
func (c *conn) forget() {
	c.closed = true
	c.member.watches.forget(c)
	if c.member.conns[c.session] == c {
		delete(c.member.conns, c.session)
	}
}

// receive takes in a frame of the client.
func (c *conn) receive(frame []byte) {
	d := &jute.Decoder{Rest: frame}
	switch {
	case c.closed:
	case !c.greeting:
		c.greeting = true
		c.connect(d)
	case c.session == 0: // it did not wait for the ConnectResponse
		c.hangUp()
	default:
		c.request(d)
	}
}

// connect answers a ConnectRequest: ZooKeeperServer.processConnectRequest.
func (c *conn) connect(d *jute.Decoder) {
	e, m := c.member.ensemble, c.member
	_ = d.Int32() // the version of the protocol
	seen, timeout := d.Int64(), time.Duration(d.Int32())*time.Millisecond
	id, secret := d.Int64(), d.Bytes()
	if d.Bad || seen > m.zxid { // the client has seen more than this member: it is to try another
		c.hangUp()
		return
	}
	timeout = min(max(timeout, e.config.Min), e.config.Max)
	if id == 0 {
		e.atLeader(m, func() {
			e.whenQuorate(func() {
				id := e.begin(m, timeout)
				e.commit(&txn{session: id})
				e.toFollower(m, func() { c.greet(true, id, timeout) })
			})
		})
		return
	}
	if former := m.conns[id]; former != nil { // even if the password is wrong
		former.hangUp()
	}
	if string(secret) != string(password(id)) {
		c.greet(false, id, timeout)
		return
	}
	if m.stranded != nil && m.stranded.sessions != nil { // a former leader decides alone
		_, resumed := m.stranded.sessions[id]
		c.greet(resumed, id, timeout)
		return
	}
	e.atLeader(m, func() {
		resumed := e.resume(id, m, timeout)
		e.toFollower(m, func() { c.greet(resumed, id, timeout) })
	})
}

// greet sends a ConnectResponse: a session, or 0 if it is over.
func (c *conn) greet(live bool, id int64, timeout time.Duration) {
	if c.closed {
		return
	}
	secret := make([]byte, 16)
	if live {
		secret = password(id)
		c.session, c.timeout = id, timeout
		c.member.conns[id] = c
	} else {
		id, timeout = 0, 0
	}
	c.send(func(e *jute.Encoder) {
		e.Int32(0)
		e.Int32(int32(timeout.Milliseconds()))
		e.Int64(id)
		e.Bytes(secret)
	})
	if !live || c.wire.dismissed {
		c.hangUp()
	}
}
