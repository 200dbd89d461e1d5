package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// Who is refused learns all about the holder, however often it has tried before, and however
// it waits; the client does not keep the data in the meantime.
func TestRefusedWithData(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", holdfast.WithData([]byte("d")))
		refused := func(what string, err error) {
			var held *holdfast.HeldError
			if !errors.As(err, &held) || held.Holder.Token != lock.Token() || string(held.Holder.Data) != "d" {
				t.Errorf("%s: %v, %+v", what, err, held)
			}
		}
		for range 3 {
			_, err := b.TryAcquire(t.Context(), "k")
			refused("a try", err)
			if dynamolock.HasData(b.Client) {
				t.Error("data is remembered after a try")
			}
			_, err = b.Acquire(t.Context(), "k", holdfast.WithWait(poll/2))
			refused("a wait", err)
			if dynamolock.HasData(b.Client) {
				t.Error("data is remembered after a wait")
			}
		}
	})
}

// A client remembers a bounded number of keys, also of those that it has waited for, and
// none that it found free.
func TestMemoryOfKeys(t *testing.T) {
	const most = 10
	defer dynamolock.SetMaxLines(dynamolock.SetMaxLines(most))
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		for i := range 3 * most {
			key := fmt.Sprint("held", i)
			a.hold(t, key)
			if _, err := b.Acquire(t.Context(), key, holdfast.WithWait(poll)); !errors.Is(err, holdfast.ErrHeld) {
				t.Fatal(err)
			}
			if n := dynamolock.Lines(b.Client); n > most {
				t.Fatalf("%d keys are remembered", n)
			}
		}
	})
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		b.isHeld(t, "k", lock.Token())
		mustRelease(t, lock)
		b.conn.SetFault(on(acquire, 1, dynamofake.Fail(dynamofake.Throttled())))
		if _, err := b.TryAcquire(t.Context(), "k", once); !errors.Is(err, holdfast.ErrDisconnected) {
			t.Fatal(err)
		}
		if n := dynamolock.Lines(b.Client); n != 0 {
			t.Errorf("%d free keys are remembered", n)
		}
	})
}

// Nor do tries that watch holders who seem to be gone, and end before they know, make it remember more, whether they can read or not.
func TestMemoryOfWatches(t *testing.T) {
	const most = 10
	defer dynamolock.SetMaxLines(dynamolock.SetMaxLines(most))
	for _, reads := range []bool{true, false} {
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			b := h.client(t)
			b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				if op.Name == "GetItem" && !reads {
					return dynamofake.Fail(dynamofake.Throttled())
				}
				return dynamofake.Fault{}
			})
			for i := range 3 * most {
				key, dead := fmt.Sprint("dead", i), npm("7", "20000", "g")
				dead["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().Add(-2 * lease).UnixMilli()))
				h.set(key, dead)
				if _, err := b.TryAcquire(within(t, 3*time.Second), key); errors.Is(err, holdfast.ErrHeld) != reads {
					t.Fatal(err)
				}
				if n := dynamolock.Lines(b.Client); n > most {
					t.Fatalf("%d keys are remembered", n)
				}
			}
		})
	}
}

// Nor do tries that have seen nothing, since they are given up during the read that is to tell what another one's write has come to.
func TestMemoryOfALookInVain(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		var failing atomic.Bool
		failing.Store(true)
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			switch {
			case op.Name == "GetItem":
				return dynamofake.Drop()
			case purposeOf(op) == acquire && failing.Load():
				return dynamofake.Fail(dynamofake.Throttled())
			}
			return dynamofake.Fault{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		locks, errs := make(chan *holdfast.Lock, 3), make(chan error, 3)
		for range 3 {
			go func() {
				lock, err := a.TryAcquire(ctx, "k", holdfast.WithRetry(holdfast.Retry{Max: time.Second}))
				if errs <- err; err == nil {
					locks <- lock
				}
			}()
		}
		time.Sleep(10 * time.Second)
		a.conn.ResetCounts()
		failing.Store(false)
		lock := <-locks
		time.Sleep(200 * time.Millisecond)
		if reads := a.conn.Calls()["GetItem"]; reads == 0 {
			t.Error("the others do not look")
		}
		cancel()
		for range 3 {
			if err := <-errs; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if n := dynamolock.Lines(a.Client); n != 0 {
			t.Errorf("%d keys are remembered", n)
		}
		mustRelease(t, lock)
	})
}

// Without room to remember a key, each try is one write, and one read that tells whether the holder seems to be dead. It also takes over
// what has expired by the wall clock.
func TestTriesWithoutMemory(t *testing.T) {
	defer dynamolock.SetMaxLines(dynamolock.SetMaxLines(0))
	alone(t, dynamolock.Options{TrustLocalTime: true}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		i := npm("7", "20000", "g")
		i["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().UnixMilli()))
		h.set("k", i)
		a.conn.ResetCounts()
		for range 5 {
			a.isHeld(t, "k", 7)
		}
		a.costs(t, "5 tries", 5, 5, 5, 5)
		time.Sleep(2 * lease)
		ctx, cancel := context.WithTimeout(t.Context(), lease)
		defer cancel()
		if lock, err := a.TryAcquire(ctx, "k"); err != nil || lock.Token() != 8 {
			t.Error(lock, err)
		}
	})
}
