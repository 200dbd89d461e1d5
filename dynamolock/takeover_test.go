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
)

// A waiter takes over from a dead holder as soon as the lease is over on the waiter's
// clock, not a poll period later, and never before.
func TestTakeover(t *testing.T) {
	for _, foreign := range []time.Duration{1500 * time.Millisecond, 5 * time.Second, lease, 3 * time.Minute} {
		t.Run(fmt.Sprint(foreign), func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
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

// An item that changes belongs to a live holder, whatever changed. A change shown only by
// an old replica does not count.
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
		a.close(t)
	})
}

// Clocks that are set wrong change nothing: neither the holder's nor the
// observer's.
func TestWallClocksAreNotCompared(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		for _, holders := range []bool{true, false} {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				if holders {
					a.clock.Jump(jump)
				} else {
					b.clock.Jump(jump)
				}
				lock := a.hold(t, "k")
				ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
				defer cancel()
				if _, err := b.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a clock %v off: %v", jump, err)
				}
				if err := lock.Err(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A holder's wall clock jumps forward by an hour: the machine may have been suspended, so
// the holder gives its locks up, and nobody else has them before.
func TestClockSetForwardUnderAHolder(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		done := make(chan bool)
		go func() {
			b.hold(t, "k")
			done <- isDone(lock)
		}()
		time.Sleep(lease)
		a.clock.Jump(time.Hour)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrClockJump) {
			t.Error(err)
		}
		if !<-done {
			t.Error("two holders")
		}
	})
}

// With TrustLocalTime, a client takes over an expired lock at once. If the item has no
// time, the client observes it as usual.
func TestTrustLocalTime(t *testing.T) {
	bubble(t, dynamolock.Options{TrustLocalTime: true}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		dead := npm("7", "20000", "g")
		dead["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().Add(-lease - 2*time.Second).UnixMilli()))
		h.set("dead", dead)
		if d := took(func() { a.hold(t, "dead") }); d > time.Second {
			t.Errorf("it took %v", d)
		}
		fresh := npm("7", "20000", "g")
		fresh["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().Add(-lease / 2).UnixMilli()))
		h.set("fresh", fresh)
		if d := took(func() { a.hold(t, "fresh") }); d < lease/2 || d > lease/2+3*time.Second {
			t.Errorf("it took %v", d)
		}
		h.set("untold", npm("7", "20000", "g"))
		if d := took(func() { a.hold(t, "untold") }); d < lease {
			t.Errorf("it took %v", d)
		}
	})
}

// A client that only ever tries still notices that a holder is dead.
func TestTriesObserve(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		h.set("k", npm("7", "20000", "g"))
		for _, want := range []bool{false, false, true} {
			lock, err := a.TryAcquire(t.Context(), "k")
			if (err == nil) != want || (err != nil && !errors.Is(err, holdfast.ErrHeld)) {
				t.Errorf("%v, %v, want success %v", lock, err, want)
			}
			time.Sleep(lease * 2 / 3)
		}
	})
}

// The memory for keys that are only tried is bounded.
func TestManyKeysTried(t *testing.T) {
	defer dynamolock.SetMaxLines(dynamolock.SetMaxLines(1000))
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a := h.client(t)
		defer a.close(t)
		for i := range 1200 {
			key := fmt.Sprint(i)
			h.set(key, npm("7", "20000", "g"))
			if _, err := a.TryAcquire(t.Context(), key); !errors.Is(err, holdfast.ErrHeld) {
				t.Fatal(err)
			}
		}
		if n := dynamolock.Lines(a.Client); n > 1024 {
			t.Errorf("%d keys are remembered", n)
		}
	})
}

// A client that only tries takes over from dead holders even if there are more of them
// than it remembers at a time: later keys do not displace earlier ones.
func TestManyDeadHolders(t *testing.T) {
	const dead = 500
	defer dynamolock.SetMaxLines(dynamolock.SetMaxLines(200))
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a := h.client(t)
		defer a.close(t)
		for k := range dead {
			h.set(fmt.Sprint(k), npm("7", "20000", "g"))
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
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
				return true
			})
			time.Sleep(lease)
		}
	})
}
