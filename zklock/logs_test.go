package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/logtest"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Servers may grant another session timeout than was asked for. That is a warning, as all that a lease means follows from it.
func TestAnotherSessionTimeout(t *testing.T) {
	for name, longest := range map[string]time.Duration{"as asked": virtualSession, "shorter": virtualSession / 2} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				e.Limit(time.Second, 2*time.Second, longest)
				e.Kill(0)
				e.Start(0)
				time.Sleep(time.Minute)
				var logs logtest.Recorder
				client := dialWired(t, e, zklock.Options{Logger: logs.Logger()})
				synctest.Wait()
				const text = "the servers grant another session timeout than was asked for"
				if got := client.SessionTimeout(); got != longest || logs.Has(text) != (longest != virtualSession) {
					t.Errorf("a session of %v, and a warning: %v", got, logs.Has(text))
				}
				if logs.Has(text) {
					logs.Check(t, nil, logtest.Want{Text: text, Level: slog.LevelWarn, Attrs: "asked granted"})
				}
				if err := client.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

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
