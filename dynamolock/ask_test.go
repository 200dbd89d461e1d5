package dynamolock_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// What another program has written as an ask or an intent is not told to the holder, and keeps no client from the key.
func TestForeignHints(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		const asked, intent = "holdfastAskedToken", "holdfastIntent"
		for name, hint := range map[string]item{
			"asked of another grant": {asked: n("1")}, "asked as text": {asked: s("x")}, "asked as bytes": {asked: b("x")},
			"asked of none": {asked: n("0")}, "asked of a fraction": {asked: n("0.5")},
			"a short intent": {intent: b("x")}, "an intent of a later form": {intent: b(strings.Repeat("A", 64) + "20000 1000 -1 7")},
		} {
			write := func() {
				i := h.item("k")
				maps.Copy(i, hint)
				h.set("k", i)
			}
			lock := a.hold(t, "k")
			write()
			time.Sleep(lease)
			if isClosed(lock.Asked()) {
				t.Errorf("%s: asked", name)
			}
			mustLive(t, lock)
			mustRelease(t, lock)
			write()
			lock, err := a.TryAcquire(t.Context(), "k")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			mustRelease(t, lock)
		}
		a.hold(t, "k")
		info, err := a.Inspect(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for _, grant := range []string{"x", "leased:x:", "guid:B:!"} {
			info.Grant = grant
			if err := a.Ask(t.Context(), info); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("Ask of grant %q = %v", grant, err)
			}
		}
	})
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
