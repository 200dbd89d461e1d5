package integration_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

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
