package zkconn

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// scripted is a connection that returns its input in pieces and records what is written.
type scripted struct {
	net.Conn
	in, out []byte
	cuts    []byte
	next    int
}

func (s *scripted) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	most := len(b)
	if len(s.cuts) > 0 {
		most = min(most, 1+int(s.cuts[s.next%len(s.cuts)]))
		s.next++
	}
	n := copy(b[:most], s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *scripted) Write(b []byte) (int, error) {
	s.out = append(s.out, b...)
	return len(b), nil
}

func (s *scripted) Close() error { return nil }

// wirePaths are the paths of a script's creates; the third is a lock node of the application's own.
var wirePaths = []string{"/q/_c_a-lock-", "/q/b__lock__", "/q/_c_app-lock-", "/q/x", ""}

const expectedPaths = 2

// wireStep is a step of a script: time passes, then bytes go one way.
type wireStep struct {
	wait  time.Duration
	write bool // by go-zookeeper
	bytes []byte
}

// wireSteps turns a script's bytes into steps, frames mixed with garbage.
func wireSteps(script []byte) []wireStep {
	steps := []wireStep{{write: true, bytes: zktest.ConnectRequest()}}
	for zxid := int64(100); len(script) > 0 && len(steps) < 64; zxid++ {
		op := zktest.Take(&script)
		step := wireStep{wait: time.Duration(op>>3) * 40 * time.Millisecond}
		switch op & 7 {
		case 0:
			codes := []int32{opCreate, opDelete, 3, 4, opSetData, 8, 9, 12, opMulti, opCreateContainer, 100, opSetWatches}
			xid, code, path := int32(zktest.Take(&script)&7), zktest.Take(&script), zktest.Take(&script)
			step.write = true
			step.bytes = clientRequest(xid, codes[int(code)%len(codes)], wirePaths[int(path)%len(wirePaths)])
		case 1:
			step.write, step.bytes = true, zktest.Frame(int32(xidPing), int32(11))
		case 2, 3:
			xid, failed, size := int32(zktest.Take(&script)&7), zktest.Take(&script), zktest.Take(&script)
			switch failed >> 4 {
			case 1:
				xid = xidPing
			case 2:
				xid = xidEvent
			}
			body := make([]byte, int(size))
			if failed>>4 == 3 && size >= 4 { // what a transaction that is refused begins with
				binary.BigEndian.PutUint32(body, ^uint32(0))
			}
			step.bytes = zktest.Reply(xid, zxid, -int32(failed&1)*101, body)
		case 4:
			step.bytes = zktest.ConnectResponse(zktest.Take32(&script), int64(zktest.Take(&script)&3))
		case 5: // any length, on what looks like a reply
			step.bytes = binary.BigEndian.AppendUint32(nil, uint32(zktest.Take32(&script)))
			step.bytes = append(step.bytes, zktest.Reply(int32(zktest.Take(&script)&7), zxid, 0)[4:]...)
		default:
			n := min(int(zktest.Take(&script)&63), len(script))
			step.write, step.bytes = op&7 == 6, slices.Clone(script[:n])
			script = script[n:]
		}
		steps = append(steps, step)
	}
	return steps
}

// wireModel is the specification of a wire. It keeps the whole stream of replies and
// finds frames by position; it searches all past exchanges for what they prove about the
// session.
type wireModel struct {
	every   bool // any answer renews: no heartbeats
	stream  []byte
	at      int64 // where the next frame begins
	greeted bool

	id       int64
	timeout  time.Duration
	opened   time.Duration // since the beginning, as all times below
	requests map[int32]modelRequest
	pings    []time.Duration
	acked    []modelExchange
	tables   []modelExchange
	created  map[string]int64
	renewed  time.Duration // the most that is proven
}

type modelRequest struct {
	sent time.Duration
	op   int32
	path string
}

type modelExchange struct{ sent, read time.Duration }

// wrote adds a request; go-zookeeper sends each with one Write.
func (m *wireModel) wrote(b []byte, now time.Duration) {
	if len(b) < 12 {
		return
	}
	var xid, op int32
	_, _ = binary.Decode(b[4:], binary.BigEndian, &xid)
	_, _ = binary.Decode(b[8:], binary.BigEndian, &op)
	if xid == xidPing {
		m.pings = append(m.pings, now)
		return
	}
	r := modelRequest{sent: now, op: op}
	member := b[12:]
	var first struct {
		Op   int32
		Done bool
		Err  int32
	}
	if _, err := binary.Decode(member, binary.BigEndian, &first); op == opMulti && err == nil && first.Op == opCreate {
		member, op = member[9:], opCreate
	}
	var size uint32
	if _, err := binary.Decode(member, binary.BigEndian, &size); op == opCreate && err == nil && int64(size) <= int64(len(member)-4) {
		r.path = string(member[4 : 4+size])
	}
	m.requests[xid] = r
}

// read adds bytes of the stream of replies, and reports whether all lengths are valid, and so is the timeout of the session.
func (m *wireModel) read(b []byte, now time.Duration) bool {
	m.stream = append(m.stream, b...)
	for {
		if int64(len(m.stream)) < m.at+4 {
			return true
		}
		frame := m.stream[m.at:]
		size := int64(binary.BigEndian.Uint32(frame))
		if least, most := int64(20), int64(256); !m.greeted && (size < least || size > most) {
			return false
		}
		if least, most := int64(16), int64(16<<20); size < least || size > most {
			return false
		}
		if len(frame) < 20 {
			return true
		}
		if !m.greeted {
			if int64(len(frame)) < min(4+size, 4+mostHeader) { // with the password
				return true
			}
			timeout, id := int32(binary.BigEndian.Uint32(frame[8:])), binary.BigEndian.Uint64(frame[12:])
			if id != 0 && timeout <= 0 { // go-zookeeper would panic
				return false
			}
		}
		refused := false
		if xid := int32(binary.BigEndian.Uint32(frame[4:])); m.greeted && m.requests[xid].op == opMulti && size >= 20 {
			if len(frame) < 24 {
				return true
			}
			refused = int32(binary.BigEndian.Uint32(frame[20:])) == -1
		}
		m.reply(frame[4:20], refused, now)
		m.at += 4 + size
	}
}

func (m *wireModel) reply(header []byte, refused bool, now time.Duration) {
	if !m.greeted {
		var greeting struct {
			Protocol, Timeout int32
			ID                int64
		}
		_, _ = binary.Decode(header, binary.BigEndian, &greeting)
		m.greeted, m.renewed = true, m.opened
		if m.id = greeting.ID; m.id != 0 {
			m.timeout = time.Duration(greeting.Timeout) * time.Millisecond
		}
		return
	}
	var h struct {
		Xid  int32
		Zxid int64
		Err  int32
	}
	_, _ = binary.Decode(header, binary.BigEndian, &h)
	if refused {
		h.Err = -1
	}
	var r modelRequest
	switch h.Xid {
	case xidEvent:
		return
	case xidPing:
		if len(m.pings) == 0 {
			return
		}
		r.sent, m.pings = m.pings[0], m.pings[1:]
	default:
		var known bool
		if r, known = m.requests[h.Xid]; !known {
			return
		}
		delete(m.requests, h.Xid)
	}
	if _, expected := m.created[r.path]; expected && (r.op == opCreate || r.op == opMulti) && h.Err == 0 {
		m.created[r.path] = h.Zxid
	}
	writes := []int32{opCreate, opDelete, opSetData, opMulti, opCreateContainer}
	if m.every && r.op == opSetAuth {
		return
	}
	if m.every {
		m.renewed = max(m.renewed, r.sent)
	} else if h.Err == 0 && (r.op == opSync || slices.Contains(writes, r.op)) {
		for _, e := range m.tables {
			if r.op != opSync && r.sent >= e.read {
				m.renewed = max(m.renewed, e.sent)
			}
		}
		for _, e := range m.acked {
			if r.sent-e.read >= m.timeout/4+m.timeout/32 {
				m.tables = append(m.tables, modelExchange{e.sent, now})
			}
		}
	}
	if r.op != opSetAuth {
		m.acked = append(m.acked, modelExchange{r.sent, now})
	}
}

// playWire runs a script with the replies split in a certain way, checks the wire against
// the model at every step, and returns the time from which the session counts.
func playWire(t *testing.T, steps []wireStep, config Config, cuts []byte) time.Duration {
	l, fake := testLink(t, config)
	conn := &scripted{cuts: cuts}
	w := settledWire(conn, l, time.Second)
	l.connected(w)
	m := &wireModel{every: config.AnyAnswer, requests: make(map[int32]modelRequest), created: make(map[string]int64)}
	for _, path := range wirePaths[:expectedPaths] {
		l.expectCreated(path, nil)
		m.created[path] = 0
	}
	begin := fake.Time
	var in, out []byte
	var counts time.Duration
	for i, step := range steps {
		fake.Advance(step.wait)
		now := fake.Time.Mono.Sub(begin.Mono)
		if step.write {
			if n, err := w.Write(step.bytes); n != len(step.bytes) || err != nil {
				t.Fatalf("step %d: %d of %d bytes written, %v", i, n, len(step.bytes), err)
			}
			out = append(out, step.bytes...)
			if i > 0 { // the first one is the ConnectRequest
				m.wrote(step.bytes, now)
			}
		} else {
			conn.in = step.bytes
			var got []byte
			var refused error
			b := make([]byte, 1<<16)
			for len(conn.in) > 0 && refused == nil {
				var n int
				n, refused = w.Read(b)
				got = append(got, b[:n]...)
			}
			in = append(in, got...)
			if sane := m.read(step.bytes, now); sane != (refused == nil) {
				t.Fatalf("step %d: %x: %v", i, step.bytes, refused)
			} else if !sane { // which is the end of the connection
				return counts
			}
			if !bytes.Equal(got, step.bytes) {
				t.Fatalf("step %d: read %x of %x", i, got, step.bytes)
			}
		}
		counts = checkWire(t, i, w, m, begin.Mono)
		if m.greeted && m.id == 0 { // which is the end of the connection, too
			return counts
		}
	}
	if !bytes.Equal(conn.out, out) || !bytes.Equal(in, m.stream) {
		t.Fatalf("written %x as %x, read %x as %x", out, conn.out, m.stream, in)
	}
	return counts
}

// checkWire compares the wire and the link with the model, and returns from when on the session counts.
func checkWire(t *testing.T, step int, w *Wire, m *wireModel, begin time.Time) time.Duration {
	l := w.link
	s := l.Session()
	timeout := time.Duration(0)
	if l.times != nil {
		timeout = l.times.Session
	}
	if (w.trust != nil) != m.greeted || (s != nil) != (m.id != 0) || timeout != m.timeout {
		t.Fatalf("step %d: greeted %v, session %+v, timeout %v; want %v, %#x, %v", step, w.trust != nil, s, timeout, m.greeted, m.id, m.timeout)
	}
	for path, zxid := range m.created {
		if l.created[path].czxid != zxid {
			t.Fatalf("step %d: %s has czxid %d, want %d", step, path, l.created[path].czxid, zxid)
		}
	}
	if len(w.pings) != len(m.pings) || len(w.sent) != len(m.requests) {
		t.Fatalf("step %d: remembered are %v and %v, want %v and %v", step, w.sent, w.pings, m.requests, m.pings)
	}
	for xid, r := range m.requests {
		if got, ok := w.sent[xid]; !ok || got.op != r.op || got.sent.Mono.Sub(begin) != r.sent {
			t.Fatalf("step %d: request %d is remembered as %+v, want %+v", step, xid, got, r)
		}
	}
	if s == nil {
		return 0
	}
	if s.ID != m.id || s.Times().Session != m.timeout {
		t.Fatalf("step %d: session %#x for %v, want %#x for %v", step, s.ID, s.Times().Session, m.id, m.timeout)
	}
	counts := s.Lease.Deadline().Sub(begin) - m.timeout + l.host.Margin(m.timeout)
	if counts > m.renewed || counts < m.opened || m.every && counts != m.renewed {
		t.Fatalf("step %d: the session counts from %v, opened at %v, proven for %v", step, counts, m.opened, m.renewed)
	}
	return counts
}

// FuzzWire tests the wire that observes the streams (hazard Z5, and the tokens): whatever
// they contain and however the network splits them, every byte passes unchanged, each
// frame is parsed once and in its place, the session is the server's, a lock node's czxid
// is that in the reply to its create, and the session counts from no later moment than is
// proven.
func FuzzWire(f *testing.F) {
	greet := []byte{0x04, 0, 0, 0x0f, 0xa0, 3} // 4 s, session 3
	ping := []byte{0x51, 0x52, 0, 0x10, 0}     // 400 ms later each: ping, answer
	for _, parts := range [][]byte{
		slices.Concat(greet, []byte{0x08, 1, 0, 0, 0x02, 1, 0, 30, 0x08, 2, 0, 1, 0x0a, 2, 1, 0}), // creations, the second fails
		slices.Concat(greet, ping, ping, ping, ping, []byte{0xf8, 5, 8, 3, 0x52, 5, 0, 0}),        // pings, then a transaction
		slices.Concat([]byte{0x04, 0xff, 0xff, 0xff, 0xff, 1}, ping),                              // a negative timeout
		slices.Concat([]byte{0x04, 0, 0, 0, 0, 0}, ping),                                          // a refusal
		slices.Concat([]byte{0x04, 0, 0, 0, 0, 0}, []byte{0, 5, 8, 3, 0x02, 5, 0, 0}),             // the same, and a reply after it
		{0x05, 0, 0, 0, 48, 0},                                              // a part of a greeting
		slices.Concat([]byte{0x05, 0, 0, 0, 3, 0}, greet, ping),             // found by fuzzing: a frame too short for its header
		slices.Concat(greet, []byte{0x05, 0xff, 0xff, 0xff, 0xff, 1}, ping), // a negative length
		slices.Concat(greet, []byte{0x05, 0, 0, 0, 15, 1}, ping, []byte{0x05, 0, 0, 0, 17, 1, 0x07, 1, 9}, ping),
		slices.Concat(greet, []byte{0x06, 20, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 'a', 'b', 'c', 'd'}, ping),
		slices.Concat(greet, []byte{0x02, 1, 0x20, 255, 0x02, 7, 0, 0}, ping),        // an event, a stray reply
		slices.Concat(greet, []byte{0x30, 0, 11, 0, 0x06, 2, 'h', 'i'}),              // watches are set again, less than a header is written
		slices.Concat(greet, slices.Repeat([]byte{0xf8, 0, 0, 3, 0xfa, 0, 0, 0}, 4)), // a creation and its reply, each 1.24 s later
		// A failed creation, one of the application, a read; an event, a ping and a long reply in between.
		slices.Concat(greet, []byte{0, 1, 0, 0, 0, 5, 0, 2, 1, 0, 2, 0, 1, 0, 3, 3, 1, 2, 1, 0, 9, 2, 0, 0x20, 9, 2, 0, 0x10, 0, 2, 2, 1, 0}),
		slices.Concat(greet, []byte{0, 3, 3, 1, 0, 4, 0, 1, 2, 3, 0, 255, 2, 4, 0, 20, 0, 5, 0, 2, 2, 5, 0, 30}),
	} {
		for _, cuts := range [][]byte{{0}, {1}, {2}, {4}, {6}, {18}, {19}, {20}, {18, 0, 2, 19}} { // pieces, each a byte longer
			f.Add(parts, cuts, false)
		}
		f.Add(parts, []byte{18, 0, 2, 19}, true)
	}
	f.Fuzz(func(t *testing.T, script, cuts []byte, noHeartbeats bool) {
		config := Config{AnyAnswer: noHeartbeats}
		steps := wireSteps(script)
		whole := playWire(t, steps, config, nil)
		if cut := playWire(t, steps, config, cuts); cut != whole {
			t.Fatalf("the session counts from %v, and from %v with the stream cut up by %v", whole, cut, cuts)
		}
	})
}
