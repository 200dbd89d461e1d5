package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A waiter takes over from a dead holder as soon as the lease is over on its own clock, never before.
func TestTakeover(t *testing.T) {
	for _, foreign := range []time.Duration{1500 * time.Millisecond, 5 * time.Second, lease, 3 * time.Minute} {
		t.Run(fmt.Sprint(foreign), func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				h.set("k", npm("7", fmt.Sprint(foreign.Milliseconds()), "g"))
				time.Sleep(h.db.Lag)
				var lock *holdfast.Lock
				d := took(func() { lock = a.hold(t, "k") })
				if most := foreign + 3*h.db.Latency; d < foreign || d > most {
					t.Errorf("it took %v, want from %v to %v", d, foreign, most)
				}
				if lock.Token() != 8 {
					t.Errorf("token %v, want 8", lock.Token())
				}
			})
		})
	}
}

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

// A client that only tries takes over from dead holders even if there are more of them
// than it remembers at a time, which is a bounded number: later keys do not displace earlier ones.
func TestManyDeadHolders(t *testing.T) {
	const dead = 500
	defer dynamolock.SetMaxLines(dynamolock.SetMaxLines(200))
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a := h.client(t)
		for k := range dead {
			held := npm("7", "20000", "g")
			held["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())) // it does not seem to be dead
			h.set(fmt.Sprint(k), held)
		}
		left := make([]int, dead)
		for k := range left {
			left[k] = k
		}
		for round := 0; len(left) > 0; round++ {
			if round > 3 {
				t.Fatalf("%d of %d dead holders are left after %d rounds", len(left), dead, round)
			}
			left = slices.DeleteFunc(left, func(k int) bool {
				lock, err := a.TryAcquire(t.Context(), fmt.Sprint(k))
				if err != nil {
					return false
				}
				mustRelease(t, lock)
				return true
			})
			if round == 0 && len(left) < dead {
				t.Errorf("%d keys were granted at once", dead-len(left))
			}
			if n := dynamolock.Lines(a.Client); n > 224 {
				t.Errorf("%d keys are remembered", n)
			}
			time.Sleep(lease)
		}
	})
}

// A call that reclaims does not wait until it is first in line, nor after a refusal.
func TestReclaimBehindAWaiter(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		b := h.client(t)
		h.set("k", npm("7", "3600000", "g"))
		first := b.waits(t, "k")
		time.Sleep(2 * poll)
		b.conn.SetFault(on(acquire, 1, dynamofake.Fail(dynamofake.Throttled())))
		lock, err := b.Acquire(within(t, lease), "k", holdfast.WithOwner("node"), holdfast.WithReclaim())
		if err != nil {
			t.Error(err)
			h.set("k", npm("7", "1", "g"))
		} else {
			mustRelease(t, lock)
		}
		mustRelease(t, <-first)
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
