package zkfake

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// inBubble runs a test with an ensemble in virtual time.
func inBubble(t *testing.T, config Config, test func(t *testing.T, e *Ensemble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := New(config)
		defer e.Close()
		test(t, e)
	})
}

const timeout = 8 * time.Second

// client is a session of go-zookeeper at one member. It ends with the test.
func client(t *testing.T, e *Ensemble, link *Link, member int) *zk.Conn {
	t.Helper()
	dial := func(network, address string, _ time.Duration) (net.Conn, error) {
		return link.Dial(t.Context(), network, address)
	}
	conn, events, err := zk.Connect(e.Addrs()[member:member+1], timeout, zk.WithDialer(dial), zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func create(t *testing.T, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	if _, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

func has(t *testing.T, conn *zk.Conn, path string) bool {
	t.Helper()
	ok, _, err := conn.Exists(path)
	if err != nil {
		t.Fatalf("exists %s: %v", path, err)
	}
	return ok
}

// A session ends after its timeout, rounded up to a tick, and its ephemeral znodes with it. A client that is heard of keeps its
// session for ever.
func TestExpiry(t *testing.T) {
	for name, member := range map[string]int{"leader": 0, "follower": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{Members: 2, Tick: time.Second}, func(t *testing.T, e *Ensemble) {
				link := e.Link()
				silent, other := client(t, e, link, member), client(t, e, e.Link(), member)
				create(t, silent, "/silent", zk.FlagEphemeral)
				create(t, other, "/other", zk.FlagEphemeral)
				time.Sleep(time.Hour)
				_, _, gone, err := other.ExistsW("/silent")
				if err != nil || !has(t, other, "/silent") || !has(t, silent, "/other") {
					t.Fatalf("a session has ended whose client is heard of: %v", err)
				}
				cut := time.Now()
				link.Cut()
				if ev := <-gone; ev.Type != zk.EventNodeDeleted {
					t.Errorf("%+v", ev)
				}
				// The last ping was up to a third of the timeout ago, and a follower reports it up to half a tick later.
				if took := time.Since(cut); took < timeout*2/3-time.Second || took > timeout+2*time.Second {
					t.Errorf("the session of %v ended %v after the cut", timeout, took)
				}
				link.Heal()
			})
		})
	}
}

// A follower that is parted from its leader answers its clients for a while, without what the leader knows; the leader ends their
// sessions meanwhile.
func TestParted(t *testing.T) {
	inBubble(t, Config{Members: 3, Tick: time.Second, SyncLimit: 20}, func(t *testing.T, e *Ensemble) {
		there, here := client(t, e, e.Link(), 1), client(t, e, e.Link(), 2)
		create(t, there, "/there", zk.FlagEphemeral)
		if _, err := here.Sync("/"); err != nil {
			t.Fatal(err)
		}
		_, _, gone, err := here.ExistsW("/there")
		if err != nil {
			t.Fatal(err)
		}
		e.Part(1)
		create(t, here, "/later", 0)
		<-gone
		if has(t, there, "/later") || !has(t, there, "/there") || there.State() != zk.StateHasSession {
			t.Error("a parted follower knows what it cannot know, or does not answer")
		}
		e.Mend(1)
		time.Sleep(time.Second)
		if there.State() == zk.StateHasSession && has(t, there, "/there") {
			t.Error("the session goes on after it has ended")
		}
	})
}
