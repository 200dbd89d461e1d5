package zkfake

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// settled waits until one member leads and all others follow.
func settled(t *testing.T, e *Ensemble) {
	t.Helper()
	for range 1000 {
		if e.Settled() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("no leader that all follow")
}

// try creates a znode, and reports whether that was answered within some time.
func try(conn *zk.Conn, path string, within time.Duration) (answered bool, err error) {
	made := make(chan error, 1)
	go func() {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		made <- err
	}()
	select {
	case err := <-made:
		return true, err
	case <-time.After(within):
		return false, nil
	}
}

// A leader that is parted from its followers answers reads and syncs, takes sessions back, and carries out no write, until it has
// missed its followers for the sync limit. By then these have another leader, which has ended sessions.
func TestPartedLeader(t *testing.T) {
	inBubble(t, Config{Members: 3, Tick: 500 * time.Millisecond, SyncLimit: 20}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		there, here := client(t, e, link, 0), client(t, e, e.Link(), 1)
		create(t, there, "/there", zk.FlagEphemeral)
		if _, err := here.Sync("/"); err != nil {
			t.Fatal(err)
		}
		e.Part(0)
		if ok, err := try(there, "/late", 4*time.Second); ok {
			t.Errorf("a leader without followers has answered a write: %v", err)
		}
		if e.Leader() != 0 {
			t.Error("another leads already")
		}
		link.Break()
		time.Sleep(4 * time.Second)
		if there.State() != zk.StateHasSession {
			t.Error("it does not take a session back")
		}
		time.Sleep(10 * time.Second)
		if there.State() == zk.StateHasSession || e.Leader() == 0 {
			t.Error("it still leads")
		}
		for here.State() != zk.StateHasSession {
			time.Sleep(100 * time.Millisecond)
		}
		create(t, here, "/later", 0)
		time.Sleep(timeout)
		if has(t, here, "/there") || has(t, here, "/late") {
			t.Error("a session has not ended, or a write that nobody else has was carried out")
		}
		e.Mend(0)
		settled(t, e)
		if late := client(t, e, e.Link(), 0); !has(t, late, "/later") {
			t.Error("the former leader has not learned what it has missed")
		}
	})
}

// A leader that stood still while another was elected answers its clients by what it knew, until its next look at its followers.
func TestStalledLeader(t *testing.T) {
	inBubble(t, Config{Members: 3, Tick: time.Second, SyncLimit: 2}, func(t *testing.T, e *Ensemble) {
		there, here := client(t, e, e.Link(), 0), client(t, e, e.Link(), 1)
		create(t, there, "/there", 0)
		e.Stall(0)
		made := make(chan bool, 1)
		go func() {
			ok, _, err := there.Exists("/later")
			made <- ok || err != nil
		}()
		time.Sleep(4 * time.Second)
		if e.Leader() <= 0 {
			t.Fatal("no other leads")
		}
		for here.State() != zk.StateHasSession {
			time.Sleep(100 * time.Millisecond)
		}
		create(t, here, "/later", 0)
		time.Sleep(50 * time.Millisecond) // not at the same time as a beat
		e.Proceed(0)
		if <-made {
			t.Error("a leader that stood still knows of what was written meanwhile, or did not answer")
		}
		settled(t, e)
		if late := client(t, e, e.Link(), 0); !has(t, late, "/later") {
			t.Error("it has not learned what it has missed")
		}
	})
}

// When the leader is killed, another gives all sessions their whole time again.
func TestKilledLeader(t *testing.T) {
	inBubble(t, Config{Members: 3, Tick: 500 * time.Millisecond}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		silent, here := client(t, e, link, 1), client(t, e, e.Link(), 2)
		create(t, silent, "/silent", zk.FlagEphemeral)
		link.Wire(1).Refuse(true)
		link.Wire(1).Sever()
		time.Sleep(timeout / 2)
		e.Kill(0)
		killed := time.Now()
		for here.State() == zk.StateHasSession || e.Leader() < 0 {
			time.Sleep(10 * time.Millisecond)
		}
		for here.State() != zk.StateHasSession {
			time.Sleep(10 * time.Millisecond)
		}
		_, _, gone, err := here.ExistsW("/silent")
		if err != nil {
			t.Fatal(err)
		}
		if ev := <-gone; ev.Type != zk.EventNodeDeleted || time.Since(killed) < timeout || time.Since(killed) > timeout+3*time.Second {
			t.Errorf("%+v after %v", ev, time.Since(killed))
		}
		e.Start(0)
		settled(t, e)
	})
}

// A leader that has let a session expire without its followers ends it once it reaches them again, before it carries out what comes after.
func TestExpiryWaitsForAMajority(t *testing.T) {
	inBubble(t, Config{Members: 3, Tick: time.Second, SyncLimit: 60}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		there, here := client(t, e, link, 1), client(t, e, e.Link(), 0)
		create(t, there, "/there", zk.FlagEphemeral)
		time.Sleep(500 * time.Millisecond) // between two looks at the sessions
		link.Cut()
		e.Part(0)
		time.Sleep(2 * timeout)
		if !has(t, here, "/there") {
			t.Error("a session has ended without a majority")
		}
		e.Mend(0)
		create(t, here, "/later", 0)
		if has(t, here, "/there") {
			t.Error("the session ends after what came later")
		}
	})
}
