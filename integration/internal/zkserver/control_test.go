package zkserver

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

// Guards the properties of a planted node: only that server's clients see it, even after a Sync; no other server has it, no
// write depends on it, and its parent's counter does not change.
func TestPlantPartsOneFollower(t *testing.T) {
	t.Parallel()
	e := NewEnsemble(t, Config{Controlled: true, MaxSessionTimeout: session})
	ctx := t.Context()
	leader, followers, err := e.Roles(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stale := followers[0]
	conns := make([]*zk.Conn, EnsembleSize)
	for i, s := range e.Servers() {
		conns[i] = connect(t, s.Addr())
	}
	const planted = "/queue/left over-0000000000"
	wantChild := func(through int, want string) {
		t.Helper()
		got, err := conns[through].Create("/queue/n-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		if err != nil || got != want {
			t.Errorf("sequential child made through server %d = %q, %v; want %s", through, got, err, want)
		}
	}
	// seenBy reports whether the server has the node, once it has every transaction that was committed before.
	seenBy := func(i int) bool {
		t.Helper()
		if _, err := conns[i].Sync("/queue"); err != nil {
			t.Fatal(err)
		}
		children, _, err := conns[i].Children("/queue")
		if err != nil {
			t.Fatal(err)
		}
		ok, _, err := conns[i].Exists(planted)
		if err != nil {
			t.Fatal(err)
		}
		if listed := slices.Contains(children, planted[len("/queue/"):]); listed != ok {
			t.Errorf("server %d has the planted node: %v; lists it: %v", i, ok, listed)
		}
		return ok
	}

	create(t, conns[leader], "/queue", 0)
	wantChild(stale, "/queue/n-0000000000")
	_, before, err := conns[stale].Get("/queue")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Plant(stale, planted, []byte("a b")); err != nil {
		t.Fatal(err)
	}
	data, stat, err := conns[stale].Get(planted)
	if err != nil || string(data) != "a b" {
		t.Fatalf("Get on the stale server = %q, %v; want what was planted", data, err)
	}
	if stat.EphemeralOwner == 0 || stat.Czxid > before.Pzxid {
		t.Errorf("owner %#x, czxid %#x; want an ephemeral node that is older than the other child (%#x)",
			stat.EphemeralOwner, stat.Czxid, before.Pzxid)
	}
	_, after, err := conns[stale].Get("/queue")
	if err != nil || after.Pzxid != before.Pzxid || after.NumChildren != before.NumChildren+1 || after.Cversion != before.Cversion-1 {
		t.Errorf("the parent is %+v, %v; before %+v; want one child more, one change less, and the same last change", after, err, before)
	}

	wantChild(stale, "/queue/n-0000000001")
	wantChild(leader, "/queue/n-0000000002")
	for i := range conns {
		if got := seenBy(i); got != (i == stale) {
			t.Errorf("server %d (leader %d, stale %d) has the planted node: %v", i, leader, stale, got)
		}
		// This is how a client finds out whether it reads a leftover.
		if res, err := conns[i].Multi(&zk.CheckVersionRequest{Path: planted, Version: -1}); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("check through server %d = %v, %v; want %v", i, res, err, zk.ErrNoNode)
		}
		if err := conns[i].Delete(planted, -1); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("delete through server %d = %v, want %v", i, err, zk.ErrNoNode)
		}
	}
	if !seenBy(stale) {
		t.Error("the planted node is gone from its server after writes that failed")
	}
}

// Up to 3.5 it continued below zero.
func TestSequenceCounterSticksAtItsLimit(t *testing.T) {
	t.Parallel()
	s := New(t, Config{Controlled: true, MaxSessionTimeout: session})
	conn := connect(t, s.Addr())
	create(t, conn, "/queue", 0)
	sequential := func() string {
		path, err := conn.Create("/queue/n-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err.Error() // a stuck counter produces a duplicate name
		}
		return strings.TrimPrefix(path, "/queue/n-")
	}
	if got := sequential(); got != "0000000000" {
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
		if got := sequential(); got != want {
			t.Errorf("child %s, want %s", got, want)
		}
	}
}
