package zkconn

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// closing is a connection that notes whether calls could still be made when it was closed.
type closing struct {
	scripted
	link *Link
	open bool
}

func (c *closing) Close() error { c.open = c.link.Wire() != nil; return nil }

// TestLose_CallsWaitFirst: no request fails with its connection while the client still reports that it is connected.
func TestLose_CallsWaitFirst(t *testing.T) {
	l, _ := testLink(t, Config{})
	conn := &closing{link: l, open: true}
	w := newestWire(l, conn, time.Second)
	l.isOpen = true
	if w.lose(net.ErrClosed); conn.open {
		t.Error("the connection is closed while calls can be made")
	}
}

// TestKeepAuth_Many_AreBounded: a client that renews its credentials presents the newest of them.
func TestKeepAuth_Many_AreBounded(t *testing.T) {
	l, _ := testLink(t, Config{Auth: []Auth{{"digest", "configured"}}})
	for i := range 1000 {
		l.keepAuth(Auth{"digest", fmt.Sprint(i)})
	}
	if n := len(l.auth); n != 1+mostAuth || l.auth[0].Credentials != "configured" || l.auth[n-1].Credentials != "999" {
		t.Errorf("%d credentials are presented: %v", n, l.auth)
	}
}

// TestReadErrorEndsWrites checks that a connection whose reader has failed does not block writers.
func TestReadErrorEndsWrites(t *testing.T) {
	l, _ := testLink(t, Config{})
	ours, theirs := net.Pipe()
	defer theirs.Close()
	w := newestWire(l, ours, time.Millisecond)
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(connectRequest())
		written <- err
	}()
	_ = w.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := w.Read(make([]byte, 4)); err == nil {
		t.Fatal("a read without an answer succeeded")
	}
	select {
	case err := <-written:
		if err == nil {
			t.Error("a write that nobody has read succeeded")
		}
	case <-time.After(patience):
		t.Error("a write goes on, on a connection that is not read any more")
	}
}
