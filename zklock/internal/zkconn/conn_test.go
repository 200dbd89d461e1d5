package zkconn

import (
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestReadErrorEndsWrites checks that a connection whose reader has failed does not block writers.
func TestReadErrorEndsWrites(t *testing.T) {
	l, _ := testLink(t, Config{})
	ours, theirs := net.Pipe()
	defer theirs.Close()
	w := newestWire(l, ours, time.Millisecond)
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(zktest.ConnectRequest())
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
