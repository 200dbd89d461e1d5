package dynamolock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

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
