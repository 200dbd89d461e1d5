package dynamolock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

// If the release of a lock that never expires is denied, the client releases it once that
// is allowed again. Until then Release reports it as pending, and the log says why.
func TestFailClosedReleaseDenied(t *testing.T) {
	for _, mode := range closedModes {
		for _, outage := range []time.Duration{0, time.Second, time.Hour} {
			logs := &logtest.Recorder{}
			bubble(t, dynamolock.Options{Mode: mode, Logger: logs.Logger()}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				lock := a.hold(t, "k")
				a.conn.SetFault(on(release, 1, dynamofake.Fail(dynamofake.Denied())))
				if outage > 0 {
					a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Fail(dynamofake.Denied()) })
				}
				if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDenied) {
					t.Errorf("%v: Release = %v", mode, err)
				}
				time.Sleep(outage)
				a.conn.SetFault(nil)
				time.Sleep(90 * time.Second)
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
					t.Errorf("%v, denied for %v: an orphan: %v", mode, outage, err)
				}
			})
			if outage > 0 {
				logs.Check(t, nil, logtest.Want{
					Text: "what a call may have left cannot be removed", Level: slog.LevelError, Attrs: "table key error",
				})
			}
		}
	}
}

// Where nothing expires, a request that arrives long after it was given up takes a key
// for good, unless the client keeps checking for as long as its signature is valid.
func TestFailClosedLateRequest(t *testing.T) {
	for _, mode := range closedModes {
		for _, late := range []time.Duration{lease / 2, 3 * lease, 14 * time.Minute} {
			bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(late, dynamofake.Reset())))
				a.conn.ResetCounts()
				if _, err := a.TryAcquire(t.Context(), "k", once); err == nil {
					t.Fatal("granted")
				}
				time.Sleep(late + 90*time.Second)
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
					t.Errorf("%v, %v late: an orphan: %v", mode, late, err)
				}
				calls := 0
				for _, n := range a.conn.Calls() {
					calls += n
				}
				if calls > 40 {
					t.Errorf("%v, %v late: %v", mode, late, a.conn.Calls())
				}
				time.Sleep(20 * time.Minute)
				if n := dynamolock.Leftovers(a.Client); n != 0 {
					t.Errorf("%v: after 20 minutes the client still has %d keys to see to", mode, n)
				}
			})
		}
	}
}

// Close names the keys that it may leave behind, and does not take minutes.
func TestFailClosedCloseSaysWhatStays(t *testing.T) {
	for _, mode := range closedModes {
		logs := &logtest.Recorder{}
		bubble(t, dynamolock.Options{Mode: mode, Logger: logs.Logger()}, func(t *testing.T, h *harness) {
			// What arrives within a lease is undone.
			a := h.client(t)
			a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(lease/2, dynamofake.Reset())))
			_, _ = a.TryAcquire(t.Context(), "k1", once)
			a.close(t)
			if i := h.item("k1"); mode == dynamolock.FailClosed && i != nil || leaseOf(i) > 1 {
				t.Errorf("%v: an orphan: %v", mode, i)
			}

			// Close reports what may still arrive after that.
			a = h.client(t)
			a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(time.Minute, dynamofake.Reset())))
			_, _ = a.TryAcquire(t.Context(), "k2", once)
			var err error
			if d := took(func() { err = a.Close(context.WithoutCancel(t.Context())) }); d > 2*lease {
				t.Errorf("%v: Close took %v", mode, d)
			}
			if !errors.Is(err, holdfast.ErrReleasePending) || !strings.Contains(err.Error(), `"k2"`) {
				t.Errorf("%v: Close = %v", mode, err)
			}

			// The same within ctx, when nothing can be reached.
			a = h.client(t)
			a.conn.SetFault(on(acquire, 1, dynamofake.LoseReply(dynamofake.Reset())))
			_, _ = a.TryAcquire(t.Context(), "k3", once)
			a.conn.Cut()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if d := took(func() { err = a.Close(ctx) }); d > 2*time.Second { // ctx, and the grace
				t.Errorf("%v: Close took %v", mode, d)
			}
			if !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"k3"`) {
				t.Errorf("%v: Close = %v", mode, err)
			}

			// Close does not report requests that were certainly not carried out.
			a = h.client(t)
			a.conn.SetFault(on(acquire, 1, dynamofake.Refuse()))
			_, _ = a.TryAcquire(t.Context(), "k4", once)
			if d := took(func() { a.close(t) }); d > time.Second {
				t.Errorf("%v: Close took %v", mode, d)
			}
		})
		logs.Check(t, nil, logtest.Want{
			Text: "closed, and the key may stay held", Level: slog.LevelError, Attrs: "table key",
		})
	}
}

// Leftovers of calls do not block Close for ever if no reply ever comes: it reports what
// it could not confirm.
func TestCloseEndsInAnOutage(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
			a := h.client(t)
			a.conn.SetFault(on(acquire, 2, dynamofake.LoseReply(dynamofake.Reset())))
			for _, key := range []string{"k1", "k2"} {
				_, _ = a.TryAcquire(t.Context(), key, once)
			}
			a.conn.Cut()
			var err error
			if d := took(func() { err = a.Close(context.WithoutCancel(t.Context())) }); d > 2*lease {
				t.Errorf("%v: it took %v", mode, d)
			}
			if !errors.Is(err, holdfast.ErrReleasePending) || !strings.Contains(err.Error(), `"k1"`) || !strings.Contains(err.Error(), `"k2"`) {
				t.Errorf("%v: Close = %v", mode, err)
			}
		})
	}
}
