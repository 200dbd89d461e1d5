package dynamolock_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

// TestLogs takes a client through the events that can happen, and checks the names, types
// and levels of its log records. memlock tests the records that all engines share.
func TestLogs(t *testing.T) {
	const secret = "SECRET"
	logs := &logtest.Recorder{}
	bubble(t, dynamolock.Options{Logger: logs.Logger()}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k", holdfast.WithData([]byte(secret)))
		a.conn.SetFault(on(beat, 1, dynamofake.Drop()))
		time.Sleep(lease)
		if err := lock.Err(); err != nil {
			t.Fatal(err)
		}

		// The reply to an acquisition is lost, and then the right to undo it.
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			switch purposeOf(op) {
			case acquire:
				return dynamofake.LoseReply(nil)
			case release:
				return dynamofake.Fail(dynamofake.Denied())
			}
			return dynamofake.Fault{}
		})
		once := holdfast.WithRetry(holdfast.Retry{Attempts: 1})
		if _, err := a.TryAcquire(t.Context(), "unanswered", once); err == nil {
			t.Fatal("granted without an answer")
		}
		time.Sleep(time.Second)
		a.conn.SetFault(nil)
		a.close(t)
	})
	logs.Check(
		t, []string{secret},
		logtest.Want{Text: "connected", Level: slog.LevelInfo},
		logtest.Want{Text: "disconnected", Level: slog.LevelWarn},
		logtest.Want{Text: "request failed", Level: slog.LevelDebug, Attrs: "call table key error"},
		logtest.Want{Text: "heartbeat failed", Level: slog.LevelDebug, Attrs: "key owner token error"},
		logtest.Want{
			Text: "what a call may have left cannot be removed", Level: slog.LevelWarn, Attrs: "table key error",
		},
	)
}

// TestHeartbeatsOfEachMode: hooks receive the heartbeats that renew a lease, each with
// its key and duration; a lock that never expires has none.
func TestHeartbeatsOfEachMode(t *testing.T) {
	for mode, want := range map[dynamolock.Mode]int{
		dynamolock.FailOpen: 4, dynamolock.FailClosed: 0, dynamolock.FailClosedFenced: 0,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			var beats []holdfast.Heartbeat
			hooks := holdfast.Hooks{Heartbeat: func(h holdfast.Heartbeat) { beats = append(beats, h) }}
			bubble(t, dynamolock.Options{Mode: mode, Hooks: hooks}, func(t *testing.T, h *harness) {
				a := h.client(t)
				a.hold(t, "k")
				time.Sleep(lease)
				synctest.Wait()
				a.close(t)
				if n := len(beats); n < want-1 || n > want {
					t.Errorf("%d heartbeats in a lease, want %d", n, want)
				}
				for _, beat := range beats {
					if beat.Key != "k" || beat.Err != nil || beat.Took != h.db.Latency {
						t.Errorf("%+v; there and back takes %v", beat, h.db.Latency)
					}
				}
			})
		})
	}
}
