package dynamolock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

func TestFailClosedItem(t *testing.T) {
	inEach(t, closedModes, func(t *testing.T, h *harness) {
		a, mode := h.client(t), h.options.Mode
		lock := a.hold(t, "k", holdfast.WithOwner("o"))
		i := h.item("k")
		info, err := a.Inspect(t.Context(), "k")
		if err != nil || !info.Held || info.Owner != "o" || info.Token != lock.Token() || info.Lease != 0 || len(guidOf(i)) != 64 {
			t.Errorf("%+v, %v", info, err)
		}
		if mode == dynamolock.FailClosed && (len(i) != 3 || lock.Token() != 0) {
			t.Errorf("%v, token %v; want the npm client's three attributes, and no token", i, lock.Token())
		}
		if mode == dynamolock.FailClosedFenced && (lock.Token() == 0 || leaseOf(i) != 1<<31-1) {
			t.Errorf("%v, token %v", i, lock.Token())
		}
		mustRelease(t, lock)
		i = h.item("k")
		if (mode == dynamolock.FailClosed) != (i == nil) || i != nil && leaseOf(i) != 1 {
			t.Errorf("released: %v", i)
		}
		if next := a.hold(t, "k"); mode == dynamolock.FailClosedFenced && next.Token() != lock.Token()+1 {
			t.Errorf("token %v after %v", next.Token(), lock.Token())
		}
	})
}

// If clients use both forms on one key, neither form counts as free for the other.
func TestMixedModes(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		open := h.client(t)
		npm := h.client(t, func(o *dynamolock.Options) { o.Mode = dynamolock.FailClosed })
		fenced := h.client(t, func(o *dynamolock.Options) { o.Mode = dynamolock.FailClosedFenced })

		tokenless := npm.hold(t, "a")
		ctx := within(t, 3*lease)
		for _, c := range []*client{open, fenced} {
			if _, err := c.Acquire(ctx, "a", holdfast.WithWait(lease)); !errors.Is(err, holdfast.ErrHeld) {
				t.Error(err)
			}
		}
		mustVerify(t, tokenless)

		mustRelease(t, open.hold(t, "b"))
		var foreign *dynamolock.ItemError
		if _, err := npm.TryAcquire(ctx, "b"); !errors.As(err, &foreign) {
			t.Errorf("%v, want an ItemError", err)
		}
		lock := fenced.hold(t, "b")
		if _, err := open.Acquire(t.Context(), "b", holdfast.WithWait(5*time.Minute)); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		mustLive(t, lock)
	})
}

// The client retries a release that is denied, if the lock never expires, and says so in the log.
func TestFailClosedReleaseDenied(t *testing.T) {
	for _, outage := range []time.Duration{0, time.Second, time.Hour} {
		inEach(t, closedModes, func(t *testing.T, h *harness) {
			logs := h.log()
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			a.conn.SetFault(on(release, 1, dynamofake.Fail(dynamofake.Denied())))
			if outage > 0 {
				a.conn.SetFault(always(dynamofake.Fail(dynamofake.Denied())))
			}
			if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDenied) {
				t.Errorf("Release = %v", err)
			}
			time.Sleep(outage)
			a.conn.SetFault(nil)
			time.Sleep(90 * time.Second)
			if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
				t.Errorf("denied for %v: an orphan: %v", outage, err)
			}
			if outage > 0 {
				logs.Check(t, nil, logtest.Want{
					Text: "an orphaned grant cannot be removed", Level: slog.LevelError, Attrs: "key error",
				})
			}
		})
	}
}

// Where nothing expires, a request that arrives long after it was given up takes a key
// for good, unless the client keeps checking for as long as its signature is valid.
func TestFailClosedLateRequest(t *testing.T) {
	for _, late := range []time.Duration{0, lease / 2, 3 * lease, 14 * time.Minute} {
		inEach(t, closedModes, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(late, dynamofake.Reset())))
			a.conn.ResetCounts()
			if _, err := a.TryAcquire(t.Context(), "k", once); err == nil {
				t.Fatal("granted")
			}
			time.Sleep(late + 90*time.Second)
			if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
				t.Errorf("%v late: an orphan: %v", late, err)
			}
			if n := a.requests(); n > 40 {
				t.Errorf("%v late: %v", late, a.conn.Calls())
			}
			time.Sleep(20 * time.Minute)
		})
	}
}

// The table refuses all requests, or the writes, for longer than the one that had no answer may be late: its key is not forgotten.
func TestFailClosedUndoRefused(t *testing.T) {
	type test struct {
		refusal error
		writes  bool // only those are refused
		lasts   time.Duration
	}
	for name, c := range map[string]test{
		"denied":          {dynamofake.Denied(), false, time.Hour},
		"writes denied":   {dynamofake.Denied(), true, time.Hour},
		"another account": {&types.ResourceNotFoundException{}, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, closedModes, func(t *testing.T, h *harness) {
				a, b, other := h.client(t), h.client(t), h.client(t)
				for user, key := range map[*client]string{a: "k", other: "other"} {
					user.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
						switch {
						case purposeOf(op) == acquire:
							return dynamofake.LoseReply(dynamofake.Reset())
						case c.writes && op.Name == "GetItem":
							return dynamofake.Fault{}
						}
						return dynamofake.Fail(c.refusal)
					})
					if _, err := user.TryAcquire(t.Context(), key, once); err == nil {
						t.Fatal("granted")
					}
				}
				time.Sleep(c.lasts)
				if err := other.Close(context.WithoutCancel(t.Context())); !errors.Is(err, holdfast.ErrReleasePending) || !strings.Contains(err.Error(), `"other"`) {
					t.Errorf("Close = %v, and the key is held", err)
				}
				a.conn.SetFault(nil)
				time.Sleep(90 * time.Second)
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
					t.Errorf("an orphan: %v", err)
				}
			})
		})
	}
}

// Close names the keys that it may leave behind, and does not take minutes.
func TestFailClosedCloseSaysWhatStays(t *testing.T) {
	for name, c := range map[string]struct {
		fault     dynamofake.Fault // of a write that the caller gives up
		cut       bool
		ctx, most time.Duration // of Close
		pending   bool
	}{
		"arrives in a lease, is undone": {dynamofake.DeliverLate(lease/2, dynamofake.Reset()), false, time.Hour, 2 * lease, false},
		"may arrive after that":         {dynamofake.DeliverLate(time.Minute, dynamofake.Reset()), false, time.Hour, 2 * lease, true},
		"nothing can be reached":        {dynamofake.LoseReply(dynamofake.Reset()), true, time.Second, 2 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, closedModes, func(t *testing.T, h *harness) {
				logs := h.log()
				a := h.client(t)
				a.conn.SetFault(on(acquire, 1, c.fault))
				_, _ = a.TryAcquire(t.Context(), "k", once)
				if c.cut {
					a.conn.Cut()
				}
				var err error
				if d := took(func() { err = a.Close(within(t, c.ctx)) }); d > c.most {
					t.Errorf("Close took %v", d)
				}
				if errors.Is(err, context.DeadlineExceeded) != c.cut || errors.Is(err, holdfast.ErrReleasePending) != c.pending {
					t.Errorf("Close = %v", err)
				}
				if !c.pending {
					h.isFree(t, "k")
					return
				}
				if !strings.Contains(err.Error(), `"k"`) {
					t.Errorf("%v does not name the key", err)
				}
				logs.Check(t, nil, logtest.Want{Text: "closed, and the key may stay held", Level: slog.LevelError, Attrs: "key"})
			})
		})
	}
}

// Close does not wait for ever for what calls have left: it reports what it could not confirm.
func TestCloseEndsInAnOutage(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.conn.SetFault(on(acquire, 2, dynamofake.LoseReply(dynamofake.Reset())))
		for _, key := range []string{"k1", "k2"} {
			_, _ = a.TryAcquire(t.Context(), key, once)
		}
		a.conn.Cut()
		var err error
		if d := took(func() { err = a.Close(context.WithoutCancel(t.Context())) }); d > 2*lease {
			t.Errorf("it took %v", d)
		}
		if h.options.Mode == dynamolock.FailOpen && err == nil {
			return // the leases are over
		}
		if !errors.Is(err, holdfast.ErrReleasePending) || !strings.Contains(err.Error(), `"k1"`) || !strings.Contains(err.Error(), `"k2"`) {
			t.Errorf("Close = %v", err)
		}
	})
}
