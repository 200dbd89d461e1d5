package dynamolock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// What another program has left of an ask, or written in its place, is not told to the holder.
func TestAskedForeign(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		for name, asked := range map[string]item{
			"of another grant": {"holdfastAskedToken": n("1")}, "text": {"holdfastAskedToken": s("x")},
			"none": {"holdfastAskedToken": n("0")}, "a fraction": {"holdfastAskedToken": n("0.5")},
		} {
			lock := a.hold(t, "k")
			i := h.item("k")
			i["holdfastAskedToken"] = asked["holdfastAskedToken"]
			h.set("k", i)
			time.Sleep(lease)
			if isClosed(lock.Asked()) {
				t.Errorf("%s: asked", name)
			}
			mustLive(t, lock)
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
