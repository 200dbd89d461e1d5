package recordlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// After Break, the holder knows of it before anybody else gets the key, even a holder
// that is cut off. Then the next client gets the key at once.
func TestBreakTellsTheHolderFirst(t *testing.T) {
	for _, cut := range []bool{false, true} {
		bubble(t, modes[0], func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			time.Sleep(lease)
			most, want := h.opts.Heartbeat+poll+time.Second, holdfast.ErrBroken
			if cut {
				a.conn.Cut()
				// An old read may make the observation begin again.
				most, want = lease+poll+time.Second, holdfast.ErrLeaseExpired
			}
			began := time.Now()
			b.breakIt(t, "k", false)
			next := b.hold(t, "k")
			if !isDone(lock) {
				t.Errorf("cut %v: two holders", cut)
			}
			if d := time.Since(began); d > most {
				t.Errorf("cut %v: it took %v until the key was free", cut, d)
			}
			if !errors.Is(lock.Err(), want) || next.Token() <= lock.Token() {
				t.Errorf("%v; token %v after %v", lock.Err(), next.Token(), lock.Token())
			}
			a.conn.Heal()
			time.Sleep(lease)
		})
	}
}

// BreakNow, and Break of a lock that never expires, free the key at once, before the holder knows.
func TestBreakNow(t *testing.T) {
	inEach(t, modes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		breakIt := b.Break
		if !h.opts.NeverExpires {
			breakIt = b.breakNow
		}
		lock := a.hold(t, "k", holdfast.WithData([]byte("d")))
		info := b.breakIt(t, "k", !h.opts.NeverExpires)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
			t.Errorf("for the second time: %v", err)
		}
		next, err := b.TryAcquire(t.Context(), "k")
		if err != nil || !h.store.Forgetful && next.Token() <= lock.Token() {
			t.Fatalf("%v, %v", next, err)
		}
		if d := took(func() { <-lock.Done() }); d > h.opts.Heartbeat+time.Second || !errors.Is(lock.Err(), holdfast.ErrBroken) {
			t.Errorf("after %v: %v", d, lock.Err())
		}
		time.Sleep(lease)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
			t.Errorf("of another grant by now: %v", err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := breakIt(done, info); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, grant := range []string{"", "x", "a:b:c", "leased:x:", "leased:1:short", "guid:B:!", "guid:B:AAAA", "guid:S:AAAA", "leased:-1:"} {
			of := holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Grant: grant}}
			if err := breakIt(t.Context(), of); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("grant %q: %v", grant, err)
			}
		}
		mustVerify(t, next)
		mustClose(t, b)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrClosed) {
			t.Error(err)
		}
	})
}
