package zkserver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Guards the properties of a planted node: only that server's clients see it, even after a Sync; no other server has it, no
// write depends on it, and its parent's counter does not change.
func TestPlantPartsOneFollower(t *testing.T) {
	t.Parallel()
	e := NewEnsemble(t, Config{Plantable: true})
	ctx := t.Context()
	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	followers := e.Followers(ctx)
	if len(followers) != EnsembleSize-1 {
		t.Fatalf("followers %v, want two", followers)
	}
	stale := followers[0]
	conns := make([]*zk.Conn, EnsembleSize)
	for i, s := range e.Servers() {
		conns[i] = connect(t, 4*time.Second, s.Addr())
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

	if _, err := conns[leader].Create("/queue", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	wantChild(stale, "/queue/n-0000000000")
	_, before, events, err := conns[stale].ChildrenW("/queue")
	if err != nil {
		t.Fatal(err)
	}

	if err := e.Plant(ctx, leader, planted, nil); err == nil {
		t.Error("Plant on the leader succeeded")
	}
	if err := e.Plant(ctx, stale, planted, []byte("a b")); err != nil {
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
	select {
	case ev := <-events:
		if ev.Type != zk.EventNodeChildrenChanged {
			t.Errorf("the parent's watch on the stale server got %v", ev)
		}
	case <-time.After(20 * time.Second):
		t.Error("no event for the parent's watch on the stale server within 20 s")
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

	for _, path := range []string{planted, "/absent/n", "/queue/", "queue", "/queue/a\nb"} {
		if err := e.Plant(ctx, stale, path, nil); err == nil {
			t.Errorf("Plant of %q succeeded", path)
		}
	}
	e.Servers()[followers[1]].Stop(ctx)
	if err := e.Plant(ctx, followers[1], planted, nil); err == nil {
		t.Error("Plant on a stopped server succeeded")
	}
}

// Guards that a request to a silent server ends with its ctx, and that the next one gets its own answer rather than the late
// one.
func TestPlantOnAPausedServer(t *testing.T) {
	t.Parallel()
	// The limit is for the pause: a server that was given up would leave its leader.
	e := NewEnsemble(t, Config{Plantable: true, SyncLimit: 100})
	followers := e.Followers(t.Context())
	if len(followers) != EnsembleSize-1 {
		t.Fatalf("followers %v, want two", followers)
	}
	s := e.Servers()[followers[0]]
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := e.Plant(short, followers[0], "/late", nil); !errors.Is(err, short.Err()) || short.Err() == nil {
		t.Errorf("Plant on a paused server = %v, ctx %v; want the end of the ctx", err, short.Err())
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	long, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := e.Plant(long, followers[0], "/absent/n", nil); err == nil || long.Err() != nil {
		t.Errorf("Plant without a parent = %v, ctx %v; want an answer of its own", err, long.Err())
	}
	if ok, _, err := connect(t, 4*time.Second, s.Addr()).Exists("/late"); err != nil || !ok {
		t.Errorf("the node requested during the pause: %v, %v; want true", ok, err)
	}
}

// Guards that Plant without its configuration fails with a clear error.
func TestPlantNeedsItsConfiguration(t *testing.T) {
	t.Parallel()
	e := &Ensemble{servers: []*Server{{}}}
	if err := e.Plant(t.Context(), 0, "/n", nil); err == nil {
		t.Error("Plant on an ordinary ensemble succeeded")
	}
}
