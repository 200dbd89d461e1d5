package dynamolock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
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
