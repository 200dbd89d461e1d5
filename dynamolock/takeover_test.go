package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// An item that changes belongs to a live holder. A change that only an old replica shows does not count.
func TestNoTakeoverFromTheLiving(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Lag = 3 * time.Second
		a := h.client(t)
		waits := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := a.Acquire(ctx, "k")
			waits <- err
		}()
		for i := range 20 { // a holder that renews late, but in time
			h.set("k", npm("7", "20000", string(rune('a'+i))))
			time.Sleep(lease - 50*time.Millisecond)
			if i := h.item("k"); tokenOf(i) != 7 {
				t.Fatalf("taken over from a holder that had renewed its lease: %v", i)
			}
		}
		cancel()
		if err := <-waits; !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
	})
}

// Clocks that are set wrong change nothing, the holder's or the observer's.
func TestWallClocksAreNotCompared(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		for _, holders := range []bool{true, false} {
			alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				if holders {
					a.clock.Jump(jump)
				} else {
					b.clock.Jump(jump)
				}
				lock := a.hold(t, "k")
				ctx := within(t, 3*lease)
				if _, err := b.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a clock %v off: %v", jump, err)
				}
				mustLive(t, lock)
			})
		}
	}
}

// With TrustLocalTime, a client takes over an expired lock at once, if the item has a time.
func TestTrustLocalTime(t *testing.T) {
	bubble(t, dynamolock.Options{TrustLocalTime: true}, func(t *testing.T, h *harness) {
		a := h.client(t)
		for _, c := range []struct{ age, least, most time.Duration }{
			{lease + 2*time.Second, 0, time.Second},
			{lease / 2, lease / 2, lease/2 + 3*time.Second},
			{0, lease, 2 * lease}, // no time
		} {
			key, i := fmt.Sprint(c.age), npm("7", "20000", "g")
			if c.age > 0 {
				i["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().Add(-c.age).UnixMilli()))
			}
			h.set(key, i)
			if d := took(func() { a.hold(t, key) }); d < c.least || d > c.most {
				t.Errorf("the item is %v old: it took %v", c.age, d)
			}
		}
	})
}

// A grant that the caller may reclaim, and whose item no write can take, is an error; it is not written to again and again.
func TestReclaimOfWhatCannotBeTaken(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		h.set("k", npm("4611686018427387904", "3600000", "g")) // the greatest token: there is no next one
		a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
			if a.requests() > 50 {
				return dynamofake.Fail(errors.New("too many requests"))
			}
			return dynamofake.Fault{}
		})
		if _, err := a.Acquire(within(t, lease), "k", holdfast.WithOwner("node"), holdfast.WithReclaim()); !errors.Is(err, dynamolock.ErrItem) {
			t.Error(err)
		}
	})
}
