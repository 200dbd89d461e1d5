package zklock

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// deaf is a connection that takes no more than the ConnectRequest.
type deaf struct {
	net.Conn
	greeted bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.greeted {
		return 0, syscall.EPIPE
	}
	d.greeted = true
	return d.Conn.Write(b)
}

// TestBrokenBeforeCredentials: a connection breaks after the server has resumed the session and before go-zookeeper has sent
// its credentials again. go-zookeeper answers a request that it cannot write twice, and has room for one answer there.
func TestBrokenBeforeCredentials(t *testing.T) {
	t.Parallel()
	l, _ := testLink(t, Options{})
	server := &nodeServer{}
	dialled := make(chan *wire, 3)
	connections := 0
	conn, _, err := zk.Connect(
		[]string{"in memory"}, 10*time.Second,
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			c, err := server.dial(network, address, timeout)
			if connections++; connections == 2 {
				c = &deaf{Conn: c}
			}
			w := settledWire(c, l, patience)
			dialled <- w
			return w, err
		}),
		zk.WithHostProvider(&ring{closing: t.Context()}),
		zk.WithLogger(discard{}),
		zk.WithLogInfo(false),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if err := conn.AddAuth("digest", []byte("user:password")); err != nil {
		t.Fatal(err)
	}
	_ = (<-dialled).Close()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for conn.Delete("/node", -1) != nil { // one that is under way when a connection ends fails
		}
	}()
	select {
	case <-answered:
	case <-time.After(patience):
		t.Error("there is no connection any more")
	}
}

// TestBrokenBeforeWatches tests hazard Z32 on a connection that ends before go-zookeeper has renewed its watches: it renews
// them on the next one, and from the zxid of the last reply that it has seen.
func TestBrokenBeforeWatches(t *testing.T) {
	l, _ := testLink(t, Options{})
	conn := &scripted{in: connectResponse(10_000, 1)}
	w := newWire(conn, l, time.Second)
	l.wire = w
	if _, err := w.Write(connectRequest()); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 256)
	if _, err := w.Read(b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(clientRequest(1, opSync, "/")); err != nil {
		t.Fatal(err)
	}
	conn.in = reply(1, 7, 0)
	_ = w.Close() // what has come can still be read
	if n, err := w.Read(b); n != 0 || err == nil {
		t.Errorf("the reply is passed on: %d bytes, %v", n, err)
	}
}
