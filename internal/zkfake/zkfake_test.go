package zkfake

import (
	"errors"
	"net"
	"slices"
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

// A follower that has not heard of its leader for too long serves no client, and learns later what it has missed.
func TestPartedForLong(t *testing.T) {
	inBubble(t, Config{Members: 3, Tick: time.Second}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		there, here := client(t, e, link, 1), client(t, e, e.Link(), 0)
		e.Part(1)
		time.Sleep(7 * time.Second)
		if there.State() == zk.StateHasSession {
			t.Error("a follower without a leader still has clients")
		}
		if _, err := link.Dial(t.Context(), "tcp", e.Addrs()[1]); err == nil {
			t.Error("it takes new ones")
		}
		create(t, here, "/missed", 0)
		e.Mend(1)
		if late := client(t, e, e.Link(), 1); !has(t, late, "/missed") {
			t.Error("it has not learned what it has missed")
		}
	})
}

// A cut loses nothing: all frames arrive when it is over. A break loses the frames on their way.
func TestCutAndBreak(t *testing.T) {
	inBubble(t, Config{Latency: func() time.Duration { return time.Millisecond }}, func(t *testing.T, e *Ensemble) {
		link := e.Link()
		conn := client(t, e, link, 0)
		link.Cut()
		made := make(chan error, 2)
		go func() {
			_, err := conn.Create("/held", nil, 0, zk.WorldACL(zk.PermAll))
			made <- err
		}()
		time.Sleep(time.Second)
		if len(made) > 0 || !link.IsCut() || len(e.Children("/")) > 0 {
			t.Error("a request went through a link that is cut")
		}
		link.Heal()
		if err := <-made; err != nil {
			t.Error(err)
		}
		for path, after := range map[string]time.Duration{"/request": time.Millisecond / 2, "/reply": time.Millisecond * 3 / 2} {
			link := e.Link()
			conn := client(t, e, link, 0)
			go func() {
				_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
				made <- err
			}()
			time.Sleep(after)
			link.Break()
			if err := <-made; !errors.Is(err, zk.ErrConnectionClosed) {
				t.Errorf("the %s was lost, and the call got %v", path, err)
			}
		}
		if names := e.Children("/"); !slices.Equal(names, []string{"held", "reply"}) {
			t.Error(names)
		}
	})
}

// A container goes when it has become empty, and not before.
func TestContainers(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Ensemble) {
		conn := client(t, e, e.Link(), 0)
		for _, path := range []string{"/new", "/used"} {
			if _, err := conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		create(t, conn, "/used/child", 0)
		time.Sleep(2 * time.Minute)
		if names := e.Children("/"); !slices.Equal(names, []string{"new", "used"}) {
			t.Error(names)
		}
		if err := conn.Delete("/used/child", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if names := e.Children("/"); !slices.Equal(names, []string{"new"}) {
			t.Error(names)
		}
	})
}

// A session can be ended at once, and its own client is told of the end of its znodes first.
func TestExpire(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, e *Ensemble) {
		conn := client(t, e, e.Link(), 0)
		create(t, conn, "/mine", zk.FlagEphemeral)
		if e.Watched(conn.SessionID()) {
			t.Error("watched by nobody")
		}
		_, _, gone, err := conn.GetW("/mine")
		if err != nil || !e.Watched(conn.SessionID()) {
			t.Errorf("not watched: %v", err)
		}
		e.Expire(conn.SessionID())
		if ev := <-gone; ev.Type != zk.EventNodeDeleted {
			t.Errorf("%+v", ev)
		}
		if names := e.Children("/"); len(names) > 0 {
			t.Error(names)
		}
	})
}
