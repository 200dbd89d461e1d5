package dynamolock_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// isHeld tries a key and insists that it is held, under the token of a lock.
func (c *client) isHeld(t testing.TB, key string, token holdfast.Token) {
	t.Helper()
	var held *holdfast.HeldError
	if _, err := c.TryAcquire(t.Context(), key); !errors.As(err, &held) || held.Holder.Token != token {
		t.Errorf("%v, want a HeldError of token %v", err, token)
	}
}

// costs checks what a client has sent since its counts were reset.
func (c *client) costs(t testing.TB, what string, writes, reads int, writeUnits, readUnits float64) {
	t.Helper()
	calls := c.conn.Calls()
	read, write := c.conn.Consumed()
	if calls["UpdateItem"] != writes || calls["GetItem"] > reads || write != writeUnits || read > readUnits {
		t.Errorf("%s: %v, %v write units, %v read units; want %d writes of %v units, at most %d reads of %v units",
			what, calls, write, read, writes, writeUnits, reads, readUnits)
	}
}

// What tries of a held key cost: one write, as the key may be free; then reads, paced, one
// for all that are made at the same time. Data that another has put into the item costs
// the holder's capacity for writes nothing.
func TestTriesOfAHeldKey(t *testing.T) {
	for _, size := range []int{0, 64 << 10} {
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			write, read := 1.0, 1.0
			if size > 0 {
				write, read = 65, 17
			}
			a, b := h.pair(t)
			lock := a.hold(t, "k", holdfast.WithData(bytes.Repeat([]byte("x"), size)))
			b.conn.ResetCounts()
			for range 20 {
				b.isHeld(t, "k", lock.Token())
			}
			b.costs(t, "20 tries", 1, 19, write, 19*read)

			b.conn.ResetCounts()
			for began := time.Now(); time.Since(began) < 3*poll; {
				b.isHeld(t, "k", lock.Token())
			}
			b.costs(t, "tries without a pause, for three periods", 0, 31, 0, 31*read)

			b.conn.ResetCounts()
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() { b.isHeld(t, "k", lock.Token()) })
			}
			all.Wait()
			b.costs(t, "100 tries at the same time", 0, 2, 0, 2*read)

			b.conn.ResetCounts()
			for range 5 {
				time.Sleep(2 * lease) // none of the beats in between was seen
				b.isHeld(t, "k", lock.Token())
			}
			b.costs(t, "tries more than a lease apart", 0, 5, 0, 5*read)

			b.conn.ResetCounts()
			for range 5 {
				if _, err := b.Acquire(t.Context(), "k", holdfast.WithWait(time.Millisecond)); !errors.Is(err, holdfast.ErrHeld) {
					t.Error(err)
				}
				time.Sleep(poll)
			}
			b.costs(t, "short waits, with the question who holds the key", 0, 10, 0, 10*read)
			if err := lock.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The try that reads for others may be cancelled, or its read may fail: the others have
// their answer, or fail by themselves.
func TestSharedLook(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		b.isHeld(t, "k", lock.Token())
		b.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.DelayReply(time.Second) })
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		b.isHeld(t, "k", lock.Token()) // the next one is not sent at once
		all.Go(func() {
			if _, err := b.TryAcquire(first, "k"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 10 {
			all.Go(func() { b.isHeld(t, "k", lock.Token()) })
		}
		time.Sleep(poll / 2) // the look is under way
		cancel()
		all.Wait()

		b.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Fail(dynamofake.Throttled()) })
		for range 10 {
			all.Go(func() {
				if _, err := b.TryAcquire(t.Context(), "k", once); !errors.Is(err, holdfast.ErrDisconnected) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		b.conn.SetFault(nil)
		b.isHeld(t, "k", lock.Token())
	})
}
