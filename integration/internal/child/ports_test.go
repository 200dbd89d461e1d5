package child

import (
	"net"
	"strconv"
	"testing"
	"time"
)

// TestListen guards that Listen waits until the kernel frees a leased port: a process that another goroutine starts shares
// all listeners for a moment, even those closed meanwhile.
func TestListen(t *testing.T) {
	lease, err := LeasePort()
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	addr := "127.0.0.1:" + strconv.Itoa(lease.Port)
	former, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = former.Close() })
	l, err := Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
