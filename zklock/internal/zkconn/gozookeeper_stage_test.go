package zkconn

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// The operations of requests that these tests make, and that the wire has no interest in.
const (
	opExists = 3
	opGetW   = 4
)

// alone is a go-zookeeper without a link, in virtual time, and a server that does as a test says.
type alone struct {
	*zk.Conn
	session func(connection int) int64                       // that is given; 0 for one that is over
	refuse  func(connection int, op int32) (code int32)      // with which a request is answered
	before  func(connection int, op int32) (frames [][]byte) // what is sent before an answer
	silent  func(connection int, op int32) bool              // there is no answer
	deaf    func(connection, write int) bool                 // a Write fails
	timeout time.Duration                                    // of the session
	down    bool                                             // there is no connection
	ring    zk.HostProvider
	dials   atomic.Int64

	mu    sync.Mutex
	asked []string // by connection: "1 connect 7", "1 sync", ...
	heard []string // events, and SessionID at the time
	conns []*noted
}

// noted is a connection of go-zookeeper of which is noted how it is used.
type noted struct {
	net.Conn
	number int
	of     *alone

	mu     sync.Mutex
	writes [][]byte
	reads  []int // how much each is for
	closed bool
}

func (c *noted) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.writes = append(c.writes, slices.Clone(b))
	n := len(c.writes)
	c.mu.Unlock()
	if c.of.deaf != nil && c.of.deaf(c.number, n) {
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(b)
}

func (c *noted) Read(b []byte) (int, error) {
	c.mu.Lock()
	c.reads = append(c.reads, len(b))
	c.mu.Unlock()
	return c.Conn.Read(b)
}

func (c *noted) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// begin has go-zookeeper connect.
func (a *alone) begin(t *testing.T) {
	t.Helper()
	if a.ring == nil {
		a.ring = &onlyServer{again: make(chan struct{}), quit: make(chan struct{})}
	}
	var err error
	ready := make(chan struct{})
	var events <-chan zk.Event
	a.Conn, events, err = zk.Connect([]string{"server:2181"}, cmp.Or(a.timeout, 10*time.Second),
		zk.WithDialer(a.dial), zk.WithHostProvider(a.ring), zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			<-ready
			a.mu.Lock()
			defer a.mu.Unlock()
			a.heard = append(a.heard, fmt.Sprintf("%v %v %d", e.Type, e.State, a.SessionID()))
		}))
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	go func() {
		for range events {
		}
	}()
	time.Sleep(time.Second)
}

// finish ends it.
func (a *alone) finish() {
	if o, ok := a.ring.(*onlyServer); ok {
		select {
		case <-o.quit:
		default:
			close(o.quit)
		}
	}
	for _, c := range a.connections() {
		_ = c.Conn.Close()
	}
	a.Close()
	time.Sleep(time.Minute)
}

// connections returns all that there have been.
func (a *alone) connections() []*noted {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.conns)
}

// end ends the present connection.
func (a *alone) end() {
	all := a.connections()
	_ = all[len(all)-1].Conn.Close()
}

func (a *alone) dial(string, string, time.Duration) (net.Conn, error) {
	time.Sleep(100 * time.Millisecond)
	a.dials.Add(1)
	if a.down {
		return nil, net.ErrClosed
	}
	ours, theirs := net.Pipe()
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &noted{Conn: ours, number: len(a.conns) + 1, of: a}
	a.conns = append(a.conns, c)
	go a.serve(theirs, c.number)
	return c, nil
}

func (a *alone) serve(conn net.Conn, number int) {
	defer conn.Close()
	for first := true; ; first = false {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		if first {
			a.note("%d connect %d", number, int64(binary.BigEndian.Uint64(body[16:])))
			session := int64(7)
			if a.session != nil {
				session = a.session(number)
			}
			if _, err := conn.Write(connectResponse(int32(cmp.Or(a.timeout, 10*time.Second).Milliseconds()), session)); err != nil {
				return
			}
			continue
		}
		xid, op := int32(binary.BigEndian.Uint32(body)), int32(binary.BigEndian.Uint32(body[4:]))
		about := ""
		a.note("%d %d%s", number, op, about)
		if a.silent != nil && a.silent(number, op) {
			continue
		}
		var frames [][]byte
		if a.before != nil {
			frames = a.before(number, op)
		}
		code := int32(0)
		if a.refuse != nil {
			code = a.refuse(number, op)
		}
		var rest []any
		switch {
		case code != 0:
		case op == opGetW:
			rest = append([]any{""}, stat()...)
		case op == opExists:
			rest = stat()
		case op == opSync:
			rest = []any{"/"}
		}
		for _, frame := range append(frames, reply(xid, int64(100+xid), code, rest...)) {
			if _, err := conn.Write(frame); err != nil {
				return
			}
		}
	}
}

// stat is an encoded Stat.
func stat() []any {
	zero := int64(0)
	return []any{zero, zero, zero, zero, int32(0), int32(0), int32(0), zero, int32(0), int32(0), zero}
}

func (a *alone) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprintf(format, args...))
}

// requests returns what the server was asked, without pings.
func (a *alone) requests() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(a.asked), func(s string) bool { return strings.HasSuffix(s, " 11") }), ", ")
}

func (a *alone) events() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.heard, ", ")
}
