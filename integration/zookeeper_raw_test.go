package integration_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/internal/jute"
)

// The requests of a rawSession: ZooDefs.OpCode.
const (
	rawCreate       = 1
	rawDelete       = 2
	rawExists       = 3
	rawGetData      = 4
	rawSetData      = 5
	rawGetACL       = 6
	rawSetACL       = 7
	rawGetChildren  = 8
	rawSync         = 9
	rawPing         = 11
	rawGetChildren2 = 12
	rawCheck        = 13
	rawMulti        = 14
	rawCreate2      = 15
	rawContainer    = 19
	rawSetWatches   = 101
	rawClose        = -11
)

// A rawServer is a server to which a test speaks ZooKeeper's protocol itself. Its answers become texts that do not depend on times, ids of
// sessions, and the zxid at which the server began.
type rawServer struct {
	t    testing.TB
	name string
	dial func() (net.Conn, error)
	base int64         // zxid
	ids  map[int64]int // numbers of sessions
}

// A rawSession is one session, whose frames are seen one by one.
type rawSession struct {
	server   *rawServer
	conn     net.Conn
	id       int64
	password []byte
	seen     int64 // zxid
	xid      int32
	watches  [3]map[string]bool // on data, on znodes that do not exist, on children
	listed   []string           // the children that it was told of last
}

// names lists the children of a znode in order; none if it cannot.
func (r *rawSession) names(path string) []string {
	r.listed = nil
	r.call(rawGetChildren, zkOperation{kind: "names", path: path}.write)
	slices.Sort(r.listed)
	return r.listed
}

// begin begins a new session.
func (r *rawSession) begin() string {
	r.id, r.password = 0, make([]byte, 16)
	for i := range r.watches {
		r.watches[i] = make(map[string]bool)
	}
	greeting := r.connect()
	if r.id != 0 {
		r.server.ids[r.id] = len(r.server.ids)
	}
	return greeting
}

const sessionIsOver = "the session is over"

// connect connects, and begins or resumes the session.
func (r *rawSession) connect() string {
	r.hangUp()
	conn, err := r.server.dial()
	must(r.server.t, err)
	r.conn = conn
	r.send(func(e *jute.Encoder) {
		e.Int32(0)
		e.Int64(r.seen)
		e.Int32(int32(lasting.Milliseconds()))
		e.Int64(r.id)
		e.Bytes(r.password)
	})
	d := r.receive()
	if d == nil {
		return "hung up"
	}
	_, timeout := d.Int32(), d.Int32()
	r.id, r.password = d.Int64(), d.Bytes()
	if r.id == 0 {
		return sessionIsOver
	}
	return fmt.Sprintf("a session of %d ms", timeout)
}

// hangUp ends the connection, and waits until the server has closed it. If the server saw the end only after the session had another
// connection, it would forget that one, too: NIOServerCnxnFactory.removeCnxn removes the connection with the session's id.
func (r *rawSession) hangUp() {
	if r.conn == nil {
		return
	}
	if half, ok := r.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = r.conn.SetDeadline(time.Now().Add(patience))
		for r.receive() != nil {
		}
	}
	_ = r.conn.Close()
	r.conn = nil
}

func (r *rawSession) send(write func(*jute.Encoder)) {
	_ = r.conn.SetDeadline(time.Now().Add(patience))
	_, _ = r.conn.Write(jute.Frame(write)) // an end of the connection is seen by receive
}

// receive reads a frame; nil if the connection has ended.
func (r *rawSession) receive() *jute.Decoder {
	var size [4]byte
	_, err := io.ReadFull(r.conn, size[:])
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if err == nil {
		_, err = io.ReadFull(r.conn, b)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		verdict.Fatalf(r.server.t, "%s does not answer", r.server.name)
	case err != nil:
		return nil
	}
	return &jute.Decoder{Rest: b}
}

// call sends a request, and describes all that comes until it is answered.
func (r *rawSession) call(op int32, body func(*jute.Encoder)) string {
	r.xid++
	xid := r.xid
	switch op {
	case rawPing:
		xid = -2
	case rawSetWatches:
		xid = -8
	}
	r.send(func(e *jute.Encoder) {
		e.Int32(xid)
		e.Int32(op)
		body(e)
	})
	var told, events []string
	tell := func(text string) string {
		slices.Sort(events) // the events of one transaction come in the order of a HashSet
		told = append(append(told, events...), text)
		events = nil
		return strings.Join(told, "; ")
	}
	for {
		d := r.receive()
		if d == nil {
			return tell("hung up")
		}
		answered, zxid, code := d.Int32(), d.Int64(), d.Int32()
		if answered == -1 {
			events = append(events, r.event(d))
			continue
		}
		if op == rawPing { // its zxid may be of another session
			return tell("pong")
		}
		r.seen = max(r.seen, zxid)
		text := fmt.Sprintf("reply to %d at %d: %d", answered-xid, zxid-r.server.base, code)
		if code == 0 && op == rawGetChildren {
			ahead := &jute.Decoder{Rest: d.Rest}
			r.listed = jute.List(ahead, ahead.String)
		}
		if code == 0 {
			text += r.server.describe(op, d)
		}
		return tell(text)
	}
}

// event describes an event, and forgets the watches that it has used up.
func (r *rawSession) event(d *jute.Decoder) string {
	what, state, path := d.Int32(), d.Int32(), d.String()
	if what != 4 {
		delete(r.watches[0], path)
		delete(r.watches[1], path)
	}
	if what == 2 || what == 4 {
		delete(r.watches[2], path)
	}
	return fmt.Sprintf("event %d in state %d of %s", what, state, path)
}

// describe describes the body of a reply without an error.
func (s *rawServer) describe(op int32, d *jute.Decoder) string {
	text := ""
	switch op {
	case rawCreate, rawSync:
		text = d.String()
	case rawCreate2, rawContainer:
		text = d.String() + s.stat(d)
	case rawExists, rawSetData, rawSetACL:
		text = s.stat(d)
	case rawGetData:
		text = fmt.Sprintf("%q", d.Bytes()) + s.stat(d)
	case rawGetACL:
		text = fmt.Sprint(jute.List(d, func() string { return fmt.Sprint(d.Int32(), " ", d.String(), " ", d.String()) })) + s.stat(d)
	case rawGetChildren, rawGetChildren2:
		names := jute.List(d, d.String)
		slices.Sort(names) // they come in no order
		text = fmt.Sprint(names)
		if op == rawGetChildren2 {
			text += s.stat(d)
		}
	case rawMulti:
		text = s.results(d)
	}
	return fmt.Sprintf(" %s, and %d bytes", text, len(d.Rest))
}

// results describes the results of a transaction.
func (s *rawServer) results(d *jute.Decoder) string {
	var all []string
	for !d.Bad {
		kind, over, code := d.Int32(), d.Bool(), d.Int32()
		if over {
			break
		}
		text := fmt.Sprintf("%d %d", kind, code)
		switch kind {
		case -1:
			text += fmt.Sprint(" ", d.Int32())
		case rawCreate:
			text += " " + d.String()
		case rawCreate2, rawContainer:
			text += " " + d.String() + s.stat(d)
		case rawSetData:
			text += s.stat(d)
		}
		all = append(all, text)
	}
	return fmt.Sprintf("%q", all)
}

// stat describes a Stat, without its times.
func (s *rawServer) stat(d *jute.Decoder) string {
	zxid := func() int64 { return max(d.Int64()-s.base, -1) } // all before the test are the same
	czxid, mzxid := zxid(), zxid()
	_, _ = d.Int64(), d.Int64()
	version, cversion, aversion, owner := d.Int32(), d.Int32(), d.Int32(), d.Int64()
	length, children, pzxid := d.Int32(), d.Int32(), zxid()
	who := "nobody"
	if n, ok := s.ids[owner]; ok {
		who = fmt.Sprint("session ", n)
	} else if owner != 0 {
		who = fmt.Sprintf("%#x", owner)
	}
	return fmt.Sprintf(" {c%d m%d p%d v%d,%d,%d of %s, %d bytes, %d children}",
		czxid, mzxid, pzxid, version, cversion, aversion, who, length, children)
}

// access lets everybody do what perms says.
func access(e *jute.Encoder, perms int32) {
	e.Int32(1)
	e.Int32(perms)
	e.String("world")
	e.String("anyone")
}
