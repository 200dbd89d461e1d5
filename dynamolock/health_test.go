package dynamolock_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// The writes of one key fail, its reads do not, and nothing else is asked for: the last of the tries is soon, and the reads
// end no outage again and again.
func TestOnlyWritesFail(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var events, sent atomic.Int64
		h.options.OnEvent = onConnection(func(bool) { events.Add(1) })
		c := h.client(t)
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == "" {
				return dynamofake.Fault{}
			}
			sent.Add(1)
			return dynamofake.Fail(dynamofake.ServerError())
		})
		if _, err := c.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 5, Initial: 2 * time.Second})); err == nil {
			t.Error("granted")
		}
		if n := sent.Load(); n < 5 || n > 10 {
			t.Errorf("%d tries, want 5, or some more", n)
		}
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			if _, err := c.TryAcquire(t.Context(), "k", once); err == nil {
				t.Error("granted")
			}
		}
		if n := events.Load(); n > 5 {
			t.Errorf("%d events", n)
		}
		c.conn.SetFault(nil)
	})
}
