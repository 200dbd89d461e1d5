package dynamolock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// lost are the ways to lose a reply: the client notices at once, or never.
var lost = map[string]dynamofake.Fault{
	"reset":   dynamofake.LoseReply(dynamofake.Reset()),
	"silence": dynamofake.LoseReply(nil),
	"500":     dynamofake.LoseReply(dynamofake.ServerError()),
}

// inEachLoss runs a test in virtual time in each of some modes, for each way to lose a reply.
func inEachLoss(t *testing.T, modes []dynamolock.Mode, run func(t *testing.T, h *harness, fault dynamofake.Fault)) {
	t.Helper()
	for name, fault := range lost {
		t.Run(name, func(t *testing.T) { inEach(t, modes, func(t *testing.T, h *harness) { run(t, h, fault) }) })
	}
}

func TestLostReplyToRelease(t *testing.T) {
	inEachLoss(t, allModes, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		a.conn.SetFault(on(release, 1, fault))
		mustRelease(t, lock)

		// The next one has the key before the second try gets there.
		lock = a.hold(t, "k")
		waits := b.waits(t, "k")
		time.Sleep(poll)
		a.conn.SetFault(on(release, 1, dynamofake.LoseReply(nil)))
		released := make(chan error)
		go func() { released <- lock.Release(t.Context()) }()
		next := <-waits
		if err := <-released; err != nil {
			t.Errorf("Release, and the next one was quick: %v", err)
		}
		mustVerify(t, next)
	})
}

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

// Close confirms what the client gave up just before.
func TestCloseAfterGivingUp(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
		ctx := within(t, 100*time.Millisecond)
		_, _ = a.Acquire(ctx, "k")
		a.close(t)
		h.isFree(t, "k")

		a = h.client(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
		ctx = within(t, 100*time.Millisecond)
		_, _ = a.Acquire(ctx, "k")
		a.conn.Cut()
		closing := within(t, lease)
		if err := a.Close(closing); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close, with an orphan that cannot be reached: %v", err)
		}
	})
}
