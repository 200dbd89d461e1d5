package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestCloseOfStoppedServer: Close sends the end of the session although no reply comes in time. When the server resumes,
// the lock is free, long before the session would expire.
func TestCloseOfStoppedServer(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{TickTime: tick, MaxSessionTimeout: longest})
	client, key := dial(t, s.Addr(), &zklock.Options{SessionTimeout: longest}), newKey(t)
	take(t, client, key)
	must(t, s.Pause())
	done, cancel := context.WithCancel(context.Background())
	cancel()
	err := receive(t, "Close returns", async(func() error { return client.Close(done) }))
	if !errors.Is(err, holdfast.ErrReleasePending) {
		t.Errorf("Close: %v", err)
	}
	resumed := time.Now()
	must(t, s.Resume())
	noResidue(t, plain(t, s.Addr()), under(key))
	if took := time.Since(resumed); took > longest*3/4 {
		verdict.Fatalf(t, "the lock was free only %v later", took)
	}
}

// TestSocketOfAnExpiredSession: the client closes the connection on which it learned that its session had expired. A server
// that has told it so leaves its own end open; the fake, whose connections have no halves, does not.
func TestSocketOfAnExpiredSession(t *testing.T) {
	playOnServer(t, nil, func(t *testing.T, s *scene) {
		for range 3 {
			lock := take(t, s.client, newKey(t))
			s.expire()
			receive(t, "the lock is lost", lock.Done())
			take(t, s.client, newKey(t)) // in the next session
		}
		eventually(t, "one connection is left", func() bool { return s.proxy.Conns() == 1 })
	})
}
