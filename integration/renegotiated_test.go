package integration_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// renegotiated makes a client hold a lock in a session with timeout asked, restarts its
// server with other limits, and returns when the session goes on with the new timeout.
func renegotiated(t *testing.T, s *zkserver.Server, key string, asked time.Duration, limits map[string]string, want time.Duration) (*zklock.Client, *holdfast.Lock, *faultproxy.Proxy) {
	t.Helper()
	p := proxy(t, s.Addr())
	client := dial(t, p.Addr(), &zklock.Options{SessionTimeout: asked})
	if got := client.SessionTimeout(); got != asked {
		t.Fatalf("the session lasts for %v, want %v", got, asked)
	}
	lock := take(t, client, key)
	s.Stop(t.Context())
	must(t, s.Configure(limits))
	must(t, s.Start(t.Context()))
	eventually(t, "the session goes on with another timeout", func() bool { return client.SessionTimeout() == want })
	return client, lock, p
}

// TestSessionShortened tests the cure of hazard Z15: a resumed session has the timeout
// negotiated at that point. A server that grants less than before ends the session
// sooner, and the holder must know first.
func TestSessionShortened(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{TickTime: tick, MaxSessionTimeout: longest})
	client, lock, p := renegotiated(t, s, "shortened", longest, map[string]string{"maxSessionTimeout": "8000"}, 8*time.Second)
	if err := lock.Verify(limited(t)); err != nil {
		must(t, fmt.Errorf("the lock did not outlive the restart: %w", err))
	}
	var a audit
	a.granted(t, lock)
	waiter := a.inLine(t, dial(t, s.Addr(), options()), "shortened")
	if left := time.Until(lock.Deadline()); left > client.SessionTimeout() {
		t.Errorf("the holder believes in its lock for another %v, in a session of %v", left, client.SessionTimeout())
	}
	p.BlackHole(faultproxy.Both)
	next := receive(t, "the next grant", waiter) // audit compares at that moment
	if err := lock.Err(); !errors.Is(err, holdfast.ErrSessionExpired) {
		t.Errorf("Err = %v, want ErrSessionExpired", err)
	}
	if next.Token() <= lock.Token() {
		t.Errorf("token %d after %d", next.Token(), lock.Token())
	}
}

// TestCloseEndsTheSessionLeft tests the cure of hazard Z51: a session whose timeout has grown is given up for a new one, but not by the
// server. Close ends both, also where the server serves nobody without credentials.
func TestCloseEndsTheSessionLeft(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{TickTime: tick, MaxSessionTimeout: 2 * longest, Props: map[string]string{
		"zookeeper.enforce.auth.enabled": "true",
		"zookeeper.enforce.auth.schemes": "digest",
	}})
	auth, acl := digest(t)
	client := dialServers(t, zklock.Options{SessionTimeout: longest, Auth: []zklock.Auth{auth}}, s.Addr())
	conn := client.Conn()
	before := conn.SessionID()
	const path = "/of-the-application"
	must(t, errOf(conn.Create(path, nil, zk.FlagEphemeral, acl)))

	s.Stop(t.Context())
	must(t, s.Configure(map[string]string{"minSessionTimeout": fmt.Sprint(2 * longest.Milliseconds())}))
	must(t, s.Start(t.Context()))
	eventually(t, "a new session begins", func() bool { return conn.State() == zk.StateHasSession && conn.SessionID() != before })
	witness := plain(t, s.Addr())
	must(t, witness.AddAuth(auth.Scheme, []byte(auth.Credentials)))
	there, _, err := witness.Exists(path)
	if must(t, err); !there {
		t.Error("the session that was left has ended before Close: this test shows nothing")
	}
	must(t, client.Close(limited(t)))
	must(t, errOf(witness.Sync("/")))
	there, _, err = witness.Exists(path)
	if must(t, err); there {
		t.Error("Close is confirmed, and a znode of the session that was left is there")
	}
}

// TestServerRestarted: a restart of the server with its data does not end a session that
// outlives the gap.
func TestServerRestarted(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: longest})
	client := dialServers(t, zklock.Options{SessionTimeout: longest}, s.Addr())
	lock := take(t, client, newKey(t))
	events := client.Events()
	receive(t, "Ready", events.Ready())
	s.Stop(limited(t))
	down := receive(t, "Disconnected", events.Disconnected())
	if err := lock.Err(); err != nil {
		t.Errorf("while the server is down: %v", err)
	}
	must(t, s.Start(limited(t)))
	if up := receive(t, "Ready", events.Ready()); up.Seq <= down.Seq {
		t.Errorf("Ready has number %d, Disconnected %d", up.Seq, down.Seq)
	}
	if err := lock.Verify(limited(t)); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	check(t, lock.Release(limited(t)))
	silent(t, "an event Lost", events.Lost())
}
