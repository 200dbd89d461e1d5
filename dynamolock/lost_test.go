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

// The write that acquires the lock succeeds, but its reply is lost. The next try finds
// the key held under its own guid.
func TestLostReplyToAcquire(t *testing.T) {
	for name, fault := range lost {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
				a.conn.SetFault(on(acquire, 1, fault))
				var lock *holdfast.Lock
				if d := took(func() { lock = a.hold(t, "k") }); d > lease/4 {
					t.Errorf("it took %v to get a free lock", d)
				}
				i := h.item("k")
				if lock.Token() != tokenOf(i) {
					t.Errorf("token %v, the item has %v", lock.Token(), tokenOf(i))
				}
				if left := time.Until(lock.Deadline()); left > lease-a.Options().Timeout && name == "silence" {
					t.Errorf("Deadline is %v away: counted from the second try, which changed nothing", left)
				}
				time.Sleep(3 * lease)
				if err := lock.Verify(t.Context()); err != nil {
					t.Errorf("it was not kept: %v", err)
				}
			})
		})
	}
}

// One lost reply to a heartbeat, or to each, costs nothing.
func TestLostReplyToHeartbeat(t *testing.T) {
	for name, fault := range lost {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
				lock := a.hold(t, "k")
				for range 4 {
					a.conn.SetFault(on(beat, 1, fault))
					time.Sleep(lease / 2)
				}
				if err := lock.Verify(t.Context()); err != nil {
					t.Errorf("it was lost: %v", err)
				}
			})
		})
	}
}

func TestLostReplyToRelease(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		for name, fault := range lost {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					lock := a.hold(t, "k")
					a.conn.SetFault(on(release, 1, fault))
					if err := lock.Release(t.Context()); err != nil {
						t.Errorf("Release: %v", err)
					}

					// The next one has the key before the second try gets there.
					lock = a.hold(t, "k")
					waits := make(chan *holdfast.Lock)
					go func() { waits <- b.hold(t, "k") }()
					time.Sleep(poll)
					a.conn.SetFault(on(release, 1, dynamofake.LoseReply(nil)))
					released := make(chan error)
					go func() { released <- lock.Release(t.Context()) }()
					next := <-waits
					if err := <-released; err != nil {
						t.Errorf("Release, and the next one was quick: %v", err)
					}
					if err := next.Verify(t.Context()); err != nil {
						t.Errorf("the next one: %v", err)
					}
				})
			})
		}
	}
}

// A call that gives up while its write is under way returns at once, and leaves nothing
// behind, whenever that write arrives.
func TestGiveUpWithAWriteUnderWay(t *testing.T) {
	for name, fault := range map[string]dynamofake.Fault{
		"slow":              dynamofake.Delay(time.Second),
		"slow reply":        dynamofake.DelayReply(time.Second),
		"lost reply":        dynamofake.LoseReply(nil),
		"lost":              dynamofake.Drop(),
		"late":              dynamofake.DeliverLate(time.Second, nil),
		"later":             dynamofake.DeliverLate(lease-time.Second, nil),
		"after its timeout": dynamofake.DelayReply(lease / 2),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				a.conn.SetFault(on(acquire, 1, fault))
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if d := took(func() {
					if _, err := a.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected) {
						t.Errorf("%v", err)
					}
				}); d != 100*time.Millisecond {
					t.Errorf("it returned after %v", d)
				}
				time.Sleep(2 * lease)
				if i := h.item("k"); i != nil && leaseOf(i) != 1 {
					t.Errorf("an orphan: %v", i)
				}
				synctest.Wait()
				a.conn.ResetCounts()
				time.Sleep(lease)
				if calls := a.conn.Calls(); len(calls) != 0 {
					t.Errorf("two leases later, the client still asks: %v", calls)
				}
				a.close(t)
			})
		})
	}
}

// Close confirms what the client gave up just before.
func TestCloseAfterGivingUp(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _ = a.Acquire(ctx, "k")
		a.close(t)
		if i := h.item("k"); leaseOf(i) != 1 {
			t.Errorf("an orphan: %v", i)
		}

		a = h.client(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _ = a.Acquire(ctx, "k")
		a.conn.Cut()
		closing, stop := context.WithTimeout(t.Context(), lease)
		defer stop()
		if err := a.Close(closing); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close, with an orphan that cannot be reached: %v", err)
		}
	})
}

// A request that was repeated for want of a reply arrives long after the lock was
// released: it must not leave the key held without a holder.
func TestDelayedDuplicateOfAcquire(t *testing.T) {
	for _, beats := range []time.Duration{0, lease} {
		bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			a := h.client(t)
			defer a.close(t)
			const late = lease / 2
			a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(beats+late, dynamofake.Reset())))
			lock := a.hold(t, "k")
			time.Sleep(beats)
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(late)
			if i := h.item("k"); leaseOf(i) != 1 || tokenOf(i) != lock.Token() {
				t.Errorf("held for nobody, after a hold of %v: %v", beats, i)
			}
		})
	}
}

// The same with another holder in between, whose guid hides the first.
func TestDelayedDuplicateAfterAnotherHolder(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(time.Second, dynamofake.Reset())))
		if err := a.hold(t, "k").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.hold(t, "k").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease)
		if i := h.item("k"); leaseOf(i) != 1 {
			t.Errorf("held for nobody: %v", i)
		}
	})
}
