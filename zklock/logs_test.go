package zklock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestHeartbeat_NoConnection_TellsWhy checks that OnEvent receives why a session has no connection, before its lock is lost.
func TestHeartbeat_NoConnection_TellsWhy(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		var last atomic.Value
		client := dialWired(t, e, zklock.Options{OnEvent: func(e holdfast.Event) {
			if e.Kind == holdfast.Heartbeat {
				last.Store(fmt.Sprint(e.Err))
			}
		}})
		lock := acquire(t, client, "k")
		client.Refuse(true)
		client.Break()
		<-lock.Done()
		synctest.Wait()
		if text := last.Load(); !strings.Contains(fmt.Sprint(text), "connection refused") || !errors.Is(lock.Err(), holdfast.ErrSessionExpired) {
			t.Errorf("the last heartbeat: %v, the lock: %v", text, lock.Err())
		}
	})
}
