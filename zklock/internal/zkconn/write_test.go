package zkconn

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
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
	l, _ := testLink(t, Config{})
	server := &zktest.NodeServer{}
	dialled := make(chan *Wire, 3)
	connections := 0
	conn, _, err := zk.Connect(
		[]string{"in memory"}, 10*time.Second,
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			c, err := server.Dial(t.Context(), network, address)
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
	l, _ := testLink(t, Config{})
	conn := &scripted{in: zktest.ConnectResponse(10_000, 1)}
	w := newWire(conn, l, time.Second)
	l.connected(w)
	if _, err := w.Write(zktest.ConnectRequest()); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 256)
	if _, err := w.Read(b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(clientRequest(1, opSync, "/")); err != nil {
		t.Fatal(err)
	}
	conn.in = zktest.Reply(1, 7, 0)
	_ = w.Close() // what has come can still be read
	if n, err := w.Read(b); n != 0 || err == nil {
		t.Errorf("the reply is passed on: %d bytes, %v", n, err)
	}
}

// TestRenewalOfAFormerConnection tests hazard Z32: go-zookeeper sends the renewal of its watches that it did not come to on a
// connection on the next one, before it has looked at the last zxid for the renewal there.
func TestRenewalOfAFormerConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := testLink(t, Config{})
		l.times = l.config.Times(standardSession)
		close(l.started)
		l.watches.asks(watchKey{"/key", WatchData})(true)
		connected := func() *Wire {
			w := newWire(&scripted{}, l, time.Second)
			w.opening = zktest.At(1)
			l.connected(w)
			l.opened()
			return w
		}
		renewal := zktest.Frame(int32(5), int32(opSetWatches))
		settled := func(w *Wire) bool {
			synctest.Wait()
			select {
			case <-w.settled:
				return true
			default:
				return false
			}
		}
		_ = connected().Close()
		w := connected()
		w.noteRequest(renewal)
		if settled(w) {
			t.Error("replies are passed on when the renewal of a former connection has been sent")
		}
		w.noteRequest(renewal)
		if !settled(w) {
			t.Error("replies are kept when both have been sent")
		}
		_ = w.Close()
		for range 3 { // as for very many watches
			w = connected()
			for range 3 {
				w.noteRequest(renewal)
			}
			if !settled(w) {
				t.Error("replies are kept when there were several renewals")
			}
			_ = w.Close()
		}
	})
}
