package dynamolock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// onConnection returns an OnEvent that tells whether the engine is reachable.
func onConnection(tell func(ready bool)) func(holdfast.Event) {
	return func(e holdfast.Event) {
		if e.Kind == holdfast.Ready || e.Kind == holdfast.Disconnected {
			tell(e.Kind == holdfast.Ready)
		}
	}
}

// calm returns an OnEvent that fails the test if the client reports an outage.
func calm(t *testing.T) func(holdfast.Event) {
	return onConnection(func(ready bool) {
		if !ready {
			t.Error("disconnected")
		}
	})
}

// Conflicts with transactions cost no lock and are no outage. The client retries soon, without a storm.
func TestTransactionConflicts(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed} {
		alone(t, dynamolock.Options{Mode: mode, OnEvent: calm(t)}, func(t *testing.T, h *harness) {
			a := h.client(t)
			var mu sync.Mutex
			var last time.Time
			var kind purpose
			conflicts := 0
			a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				mu.Lock()
				defer mu.Unlock()
				if purposeOf(op) == "" {
					return dynamofake.Fault{}
				}
				if was := kind; conflicts%20 != 0 && was == purposeOf(op) { // a release does not wait for a heartbeat
					if d := time.Since(last); d < 10*time.Millisecond || d > 100*time.Millisecond {
						t.Errorf("tried again after %v", d)
					}
				}
				last, kind = time.Now(), purposeOf(op)
				if conflicts++; conflicts%20 != 0 {
					return dynamofake.Fail(dynamofake.TransactionConflict())
				}
				return dynamofake.Fault{}
			})
			lock := a.hold(t, "k", once)
			time.Sleep(10 * lease)
			mustRelease(t, lock)
			if conflicts < 30 {
				t.Errorf("%d conflicts", conflicts)
			}
		})
	}
}
