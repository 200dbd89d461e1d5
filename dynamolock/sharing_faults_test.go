package dynamolock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// A key that nobody holds is not kept from readers that try once, and have seen nothing before, by a writer that died
// while it waited.
func TestTryAfterADeadWriter(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", shared)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.Acquire(ctx, "k")
		}()
		time.Sleep(lease / 2)
		b.conn.Cut()
		mustRelease(t, lock)
		time.Sleep(lease + time.Second)
		if _, err := h.client(t).TryAcquire(t.Context(), "k", shared); err != nil {
			t.Error(err)
		}
		cancel()
		<-done
		b.conn.Heal()
	})
}
