package dynamolock_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// leaveLate has a client give up two calls for k. The write of the first arrives only when that time has passed; that of the second takes
// the key at once, and its answer comes when the worker that looks for the first has seen it.
func leaveLate(t *testing.T, c *client, late time.Duration) {
	t.Helper()
	c.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(late, io.ErrUnexpectedEOF)))
	if _, err := c.TryAcquire(t.Context(), "k", once); err == nil {
		t.Fatal("granted")
	}
	c.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(3*time.Second)))
	if _, err := c.Acquire(within(t, 50*time.Millisecond), "k"); err == nil {
		t.Fatal("granted")
	}
	time.Sleep(4 * time.Second)
}

// The same, and the client closes: it says that the key may stay held.
func TestFreedForAnotherAndClosed(t *testing.T) {
	inEach(t, closedModes, func(t *testing.T, h *harness) {
		a := h.client(t)
		leaveLate(t, a, 2*time.Minute)
		err := a.Close(context.WithoutCancel(t.Context()))
		time.Sleep(20 * time.Minute)
		if i := h.item("k"); i != nil && leaseOf(i) != 1 && err == nil {
			t.Error("Close = nil, and the key is held for ever")
		}
	})
}
