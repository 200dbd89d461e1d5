package zkserver

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Up to 3.5 it continued below zero.
func TestSequenceCounterSticksAtItsLimit(t *testing.T) {
	t.Parallel()
	s := NewEmbedded(t, Config{})
	conn := connect(t, 4*time.Second, s.Addr())
	if _, err := conn.Create("/queue", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	create := func() string {
		path, err := conn.Create("/queue/n-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			// The stuck counter produces a duplicate name if both names have
			// the same prefix.
			return err.Error()
		}
		return strings.TrimPrefix(path, "/queue/n-")
	}
	if got := create(); got != "0000000000" {
		t.Errorf("first child %s, want 0000000000", got)
	}
	if err := s.SetCversion("/queue", math.MaxInt32-1); err != nil {
		t.Fatal(err)
	}
	third := zk.ErrNodeExists.Error()
	if version, err := Version(t.Context(), s.Addr()); err != nil || Before(version, 3, 6) {
		third = "-2147483648"
	}
	for _, want := range []string{"2147483646", "2147483647", third} {
		if got := create(); got != want {
			t.Errorf("child %s, want %s", got, want)
		}
	}
	if err := s.SetCversion("/absent", 1); err == nil {
		t.Error("SetCversion of a node that does not exist succeeded")
	}

	if err := s.Start(t.Context()); err == nil {
		t.Error("Start of a running server succeeded")
	}
	s.Stop(t.Context())
	if err := s.SetCversion("/queue", 1); err == nil {
		t.Error("SetCversion on a stopped server succeeded")
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.SetCversion("/queue", 7); err != nil {
		t.Errorf("SetCversion after a restart: %v", err)
	}
}
