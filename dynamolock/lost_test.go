package dynamolock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A call that gives up during its write returns at once, and leaves nothing behind whenever that arrives.
func TestGiveUpWithAWriteUnderWay(t *testing.T) {
	forEach(t, map[string]dynamofake.Fault{
		"slow":              dynamofake.Delay(time.Second),
		"slow reply":        dynamofake.DelayReply(time.Second),
		"lost reply":        dynamofake.LoseReply(nil),
		"lost":              dynamofake.Drop(),
		"late":              dynamofake.DeliverLate(time.Second, nil),
		"later":             dynamofake.DeliverLate(lease-time.Second, nil),
		"after its timeout": dynamofake.DelayReply(lease / 2),
	}, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		a := h.client(t)
		a.conn.SetFault(on(acquire, 1, fault))
		ctx := within(t, 100*time.Millisecond)
		if d := took(func() {
			if _, err := a.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected) {
				t.Errorf("%v", err)
			}
		}); d != 100*time.Millisecond {
			t.Errorf("it returned after %v", d)
		}
		time.Sleep(2 * lease)
		h.isFree(t, "k")
		synctest.Wait()
		a.conn.ResetCounts()
		time.Sleep(lease)
		if calls := a.conn.Calls(); len(calls) != 0 {
			t.Errorf("two leases later, the client still asks: %v", calls)
		}
	})
}
