package recordlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
	"github.com/holdfast-go/holdfast/locktest/logtest"
)

// The client retries a release that is denied, and logs it.
func TestFailClosedReleaseDenied(t *testing.T) {
	for _, outage := range []time.Duration{0, time.Second, time.Hour} {
		inEach(t, modes[1:], func(t *testing.T, h *harness) {
			logs := h.log()
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			a.conn.SetFault(on(release, 1, denied))
			if outage > 0 {
				a.conn.SetFault(always(denied))
			}
			if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, driver.ErrDenied) {
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

// A request that arrives long after it was given up takes a key for ever, unless the client looks for as long as the store accepts it.
func TestFailClosedLateRequest(t *testing.T) {
	for _, late := range []time.Duration{0, lease / 2, 3 * lease, 14 * time.Minute} {
		inEach(t, modes[1:], func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			a.conn.SetFault(on(acquire, 1, memstore.Fault{Late: late, LoseReply: true, Err: errReset}))
			a.conn.Calls()
			if _, err := a.TryAcquire(t.Context(), "k", once); err == nil {
				t.Fatal("granted")
			}
			time.Sleep(late + 90*time.Second)
			if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
				t.Errorf("%v late: an orphan: %v", late, err)
			}
			if n := a.requests(); n > 60 {
				t.Errorf("%v late: %d requests", late, n)
			}
			time.Sleep(20 * time.Minute)
		})
	}
}

// The store refuses all requests, or all writes, for longer than the unanswered one may be late: the client does not forget the key.
func TestFailClosedUndoRefused(t *testing.T) {
	type test struct {
		refusal error
		writes  bool // only those are refused
		lasts   time.Duration
	}
	for name, c := range map[string]test{
		"denied":          {denied.Err, false, time.Hour},
		"writes denied":   {denied.Err, true, time.Hour},
		"another account": {errors.New("no such table"), false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, modes[1:], func(t *testing.T, h *harness) {
				a, b, other := h.client(t), h.client(t), h.client(t)
				for user, key := range map[*client]string{a: "k", other: "other"} {
					user.conn.SetFault(func(op memstore.Op) memstore.Fault {
						switch {
						case purposeOf(op) == acquire:
							return memstore.Fault{LoseReply: true, Err: errReset}
						case c.writes && op.Name == "Read":
							return memstore.Fault{}
						}
						return memstore.Fault{Err: c.refusal, Permanent: true}
					})
					if _, err := user.TryAcquire(t.Context(), key, once); err == nil {
						t.Fatal("granted")
					}
				}
				time.Sleep(c.lasts)
				err := other.Close(context.WithoutCancel(t.Context()))
				if !errors.Is(err, holdfast.ErrReleasePending) || !strings.Contains(err.Error(), `"other"`) {
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

// Close names the keys that may stay held, and does not take minutes.
func TestFailClosedCloseSaysWhatStays(t *testing.T) {
	for name, c := range map[string]struct {
		fault     memstore.Fault // of a write that the caller gives up
		cut       bool
		ctx, most time.Duration // of Close
		pending   bool
	}{
		"arrives in a lease, is undone": {memstore.Fault{Late: lease / 2, LoseReply: true, Err: errReset}, false, time.Hour, 2 * lease, false},
		"may arrive after that":         {memstore.Fault{Late: time.Minute, LoseReply: true, Err: errReset}, false, time.Hour, 2 * lease, true},
		"nothing can be reached":        {memstore.Fault{LoseReply: true, Err: errReset}, true, time.Second, 2 * time.Second, true},
		"was never sent":                {memstore.Fault{Err: refused}, false, time.Hour, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, modes[1:], func(t *testing.T, h *harness) {
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

// Close ends in an outage, and reports the keys that may stay held.
func TestCloseEndsInAnOutage(t *testing.T) {
	inEach(t, modes, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.conn.SetFault(on(acquire, 2, memstore.Fault{LoseReply: true, Err: errReset}))
		for _, key := range []string{"k1", "k2"} {
			_, _ = a.TryAcquire(t.Context(), key, once)
		}
		a.conn.Cut()
		var err error
		if d := took(func() { err = a.Close(context.WithoutCancel(t.Context())) }); d > 2*lease {
			t.Errorf("it took %v", d)
		}
		if !h.opts.NeverExpires && err == nil {
			return // the leases are over
		}
		if !errors.Is(err, holdfast.ErrReleasePending) || !strings.Contains(err.Error(), `"k1"`) || !strings.Contains(err.Error(), `"k2"`) {
			t.Errorf("Close = %v", err)
		}
	})
}
