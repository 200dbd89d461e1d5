package faultproxy

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// fakeZK answers each request frame with a reply that carries an increasing
// zxid.
type fakeZK struct {
	addr string

	mu   sync.Mutex
	seen []string // paths of the requests that arrived
}

func newFakeZK(t *testing.T) *fakeZK {
	z := &fakeZK{}
	z.addr = serve(t, z.handle)
	return z
}

func (z *fakeZK) handle(c net.Conn) {
	if _, err := readFrame(c); err != nil {
		return
	}
	writeFrame(c, make([]byte, 36)) // ConnectResponse
	for zxid := uint64(1); ; zxid++ {
		req, err := readFrame(c)
		if err != nil {
			return
		}
		z.mu.Lock()
		z.seen = append(z.seen, pathAt(req, 8))
		z.mu.Unlock()
		reply := binary.BigEndian.AppendUint64(append([]byte(nil), req[:4]...), zxid)
		writeFrame(c, append(reply, 0, 0, 0, 0))
	}
}

// saw counts the requests for path that reached the server.
func (z *fakeZK) saw(path string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	n := 0
	for _, p := range z.seen {
		if p == path {
			n++
		}
	}
	return n
}

func readFrame(c net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c, body)
	return body, err
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func writeFrame(c net.Conn, body []byte) { _, _ = c.Write(framed(body)) }

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func request(xid int32, op Op, path string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	switch op {
	case OpMulti:
		b = append(b, 0, 0, 0, byte(OpCheck), 0, 0xff, 0xff, 0xff, 0xff)
		fallthrough
	default:
		b = appendString(b, path)
	case OpPing, OpClose:
	}
	return b
}

// zkClient is the client's end of a parsed connection.
type zkClient struct {
	net.Conn
	t *testing.T
}

func startZK(t *testing.T, upstream string) *Proxy {
	t.Helper()
	p, err := StartZooKeeper(upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// dialZK connects and opens a session.
func dialZK(t *testing.T, p *Proxy) zkClient {
	t.Helper()
	c := zkClient{dial(t, p), t}
	writeFrame(c, make([]byte, 44)) // ConnectRequest
	if body, err := readFrame(c); err != nil || len(body) != 36 {
		t.Fatalf("connect response: %d bytes, %v", len(body), err)
	}
	return c
}

func (c zkClient) send(xid int32, op Op, path string) {
	c.t.Helper()
	writeFrame(c, request(xid, op, path))
}

func (c zkClient) expectReply(xid int32) {
	c.t.Helper()
	body, err := readFrame(c)
	if err != nil {
		c.t.Fatalf("reply %d: %v", xid, err)
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != xid {
		c.t.Fatalf("reply to %d, want to %d", got, xid)
	}
}

func (c zkClient) call(xid int32, op Op, path string) {
	c.t.Helper()
	c.send(xid, op, path)
	c.expectReply(xid)
}

func expectHit(t *testing.T, hit <-chan Frame) Frame {
	t.Helper()
	select {
	case f := <-hit:
		return f
	case <-time.After(patience):
		t.Fatal("the rule did not act")
		return Frame{}
	}
}

func expectNoHit(t *testing.T, hit <-chan Frame) {
	t.Helper()
	select {
	case f := <-hit:
		t.Fatalf("the rule acted on %v", f)
	default:
	}
}
