package dynamolock_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

// TestLogs checks the records that only this engine logs; memlock tests those that all engines share.
func TestLogs(t *testing.T) {
	const secret = "SECRET"
	logs := &logtest.Recorder{}
	bubble(t, dynamolock.Options{Logger: logs.Logger()}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k", holdfast.WithData([]byte(secret)))
		a.conn.SetFault(on(beat, 1, dynamofake.Drop()))
		time.Sleep(lease)
		mustLive(t, lock)

		a.conn.SetFault(always(dynamofake.Fail(dynamofake.ServerError())))
		time.Sleep(lease / 2)
		a.conn.SetFault(nil)
		time.Sleep(lease)

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
		if _, err := a.TryAcquire(t.Context(), "unanswered", once); err == nil {
			t.Fatal("granted without an answer")
		}
		time.Sleep(time.Second)
		a.conn.SetFault(nil)
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
