package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestServerWiped has a server lose all its data (Z55): a client that has seen more than it has now is turned away until it begins
// a new session, which nobody tells it to.
func TestServerWiped(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: longest})
	client := dialServers(t, zklock.Options{SessionTimeout: 4 * time.Second}, s.Addr()) // it takes two of these and more
	lock, key := take(t, client, newKey(t)), newKey(t)
	waits := acquiring(limited(t), client, lock.Key())
	holds(t, plain(t, s.Addr()), under(lock.Key()), 2)
	session := client.Conn().SessionID()

	s.Stop(limited(t))
	must(t, s.Wipe())
	must(t, s.Start(limited(t)))
	receive(t, "the end of the lock", lock.Done())
	if err := lock.Err(); !errors.Is(err, holdfast.ErrSessionExpired) {
		t.Errorf("Err = %v, want ErrSessionExpired", err)
	}
	release(t, granted(t, waits))
	if client.Conn().SessionID() == session {
		t.Error("the session is that of before")
	}
	// Who comes then finds locks as they should be.
	one, other := dialServers(t, *options(), s.Addr()), dialServers(t, *options(), s.Addr())
	lock = take(t, one, key)
	if _, err := other.TryAcquire(limited(t), key); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("TryAcquire: %v, want ErrHeld", err)
	}
	release(t, lock)
	release(t, take(t, other, key))
}
