package integration_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// credentials records the session and its password from the connections that a proxy
// makes from now on. A test needs both to end the session from outside. It belongs to a
// filter: call see for every frame.
type credentials struct {
	mu       sync.Mutex
	session  int64
	password []byte
}

func (c *credentials) see(f faultproxy.Frame) {
	if f.Kind != faultproxy.KindConnect || f.Dir != faultproxy.ToClient || len(f.Payload) < 20 {
		return
	}
	id := int64(binary.BigEndian.Uint64(f.Payload[8:]))
	n := int(binary.BigEndian.Uint32(f.Payload[16:]))
	if id == 0 || len(f.Payload) < 20+n {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.password = id, bytes.Clone(f.Payload[20:20+n])
}

// expire ends the session in the server at once, as its expiry would.
func (c *credentials) expire(t testing.TB, addr string) {
	t.Helper()
	c.mu.Lock()
	session, password := c.session, c.password
	c.mu.Unlock()
	if session == 0 {
		t.Fatal("no session was seen")
	}
	eventually(t, "the server has ended the session", func() bool {
		endSession(addr, session, password)
		sessions, err := zkserver.Dump(limited(t), addr)
		return err == nil && len(sessions.Ephemerals[session]) == 0 && !slices.Contains(sessions.Live, session)
	})
}

// endSession resumes a session and closes it. It may fail: the server hangs up if the
// session's client resumes it at the same time.
func endSession(addr string, session int64, password []byte) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	var connect []byte
	connect = binary.BigEndian.AppendUint32(connect, 0)                     // protocol
	connect = binary.BigEndian.AppendUint64(connect, 0)                     // last zxid seen
	connect = binary.BigEndian.AppendUint32(connect, 10_000)                // timeout
	connect = binary.BigEndian.AppendUint64(connect, uint64(session))       // session
	connect = binary.BigEndian.AppendUint32(connect, uint32(len(password))) // password
	connect = append(connect, password...)
	goodbye := binary.BigEndian.AppendUint32(nil, 1)           // xid
	goodbye = binary.BigEndian.AppendUint32(goodbye, 1<<32-11) // closeSession
	for _, frame := range [][]byte{connect, goodbye} {
		framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
		if _, err := conn.Write(framed); err != nil {
			return
		}
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
			return
		}
	}
}

// expirable is proxied, and also returns a way to end the client's session.
func expirable(t *testing.T, opts *zklock.Options) (*zklock.Client, *faultproxy.Proxy, func()) {
	t.Helper()
	addr := server(t).Addr()
	p := proxy(t, addr)
	var c credentials
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		c.see(f)
		return faultproxy.Pass
	})
	return dial(t, p.Addr(), opts), p, func() {
		t.Helper()
		p.RefuseNew() // or the client would regain its session in between
		c.expire(t, addr)
		p.Drop() // so that the client reconnects
		check(t, p.Heal())
	}
}
