package dynamolock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// After Break, the holder knows of it before anybody else gets the key, even a holder
// that is cut off. Then the next client gets the key at once.
func TestBreakTellsTheHolderFirst(t *testing.T) {
	for _, cut := range []bool{false, true} {
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			time.Sleep(lease)
			most, want := a.Options().Heartbeat+poll+time.Second, holdfast.ErrBroken
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
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		breakIt := b.Break
		if h.options.Mode == dynamolock.FailOpen {
			breakIt = b.BreakNow
		}
		lock := a.hold(t, "k", holdfast.WithData([]byte("d")))
		info := b.breakIt(t, "k", h.options.Mode == dynamolock.FailOpen)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
			t.Errorf("for the second time: %v", err)
		}
		next, err := b.TryAcquire(t.Context(), "k")
		if err != nil || h.options.Mode != dynamolock.FailClosed && next.Token() <= lock.Token() {
			t.Fatalf("%v, %v", next, err)
		}
		if d := took(func() { <-lock.Done() }); d > a.Options().Heartbeat+time.Second || !errors.Is(lock.Err(), holdfast.ErrBroken) {
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
			if err := breakIt(t.Context(), holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Grant: grant}}); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("grant %q: %v", grant, err)
			}
		}
		mustVerify(t, next)
		b.close(t)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrClosed) {
			t.Error(err)
		}
	})
}

// Break also ends grants of the npm client, of either kind, and no grant but the given one.
func TestBreakForeign(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		items := map[string]item{
			"open":   npm("7", "20000", "g"),
			"closed": {"owner": s("node"), "guid": b(strings.Repeat("g", 64))},
		}
		for key, i := range items {
			h.set(key, i)
			info, err := a.Inspect(t.Context(), key)
			if err != nil || !info.Held || info.Owner != "node" {
				t.Errorf("%s: %+v, %v", key, info, err)
			}
			if key != "open" { // a heartbeat may come in between
				other := item{"owner": s("node"), "guid": b(strings.Repeat("h", 64))}
				h.set(key, other)
				if err := a.Break(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
					t.Errorf("%s, held by another by now: %v", key, err)
				}
				h.set(key, i)
			} else {
				h.set(key, npm("7", "20000", "h"))
			}
			if err := a.Break(t.Context(), info); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if d := took(func() { a.hold(t, key) }); key != "open" && d > time.Second || d > lease+poll+time.Second {
				t.Errorf("%s: it was free after %v", key, d)
			}

			again := key + " again"
			h.set(again, i)
			a.breakIt(t, again, true)
			if _, err := a.TryAcquire(t.Context(), again); err != nil {
				t.Errorf("%s, now: %v", key, err)
			}
		}
	})
}

// Nobody holds an item with a lease of 0 ms: it is shown as free, and can be acquired.
func TestLeaseOfZero(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		h.set("k", npm("7", "0", "g"))
		if info, err := a.Inspect(t.Context(), "k"); err != nil || info.Held {
			t.Errorf("%+v, %v", info, err)
		}
		if keys, err := a.list(t, ""); err != nil || len(keys) > 0 {
			t.Errorf("%q, %v", keys, err)
		}
		lock, err := a.TryAcquire(t.Context(), "k")
		if err != nil || lock.Token() != 8 {
			t.Fatalf("%v, %v", lock, err)
		}
		if n := a.conn.Calls()["UpdateItem"]; n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}
