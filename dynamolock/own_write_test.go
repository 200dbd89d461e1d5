package dynamolock_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// taking acquires and releases k, and sends what comes of it.
func (c *client) taking(t *testing.T, opts ...holdfast.Option) <-chan error {
	result := make(chan error, 1)
	ctx := within(t, 10*lease)
	go func() {
		lock, err := c.Acquire(ctx, "k", opts...)
		if err == nil {
			err = lock.Release(context.Background())
		}
		result <- err
	}()
	return result
}

// The same, and another of its client is before it in the line by then.
func TestSecondInLineMeetsItsLateWrite(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		held := a.hold(t, "k")
		time.Sleep(time.Second)
		first, second := b.secondInLine(t)
		mustRelease(t, held)
		released := time.Now()
		if err1, err2 := <-first, <-second; err1 != nil || err2 != nil || time.Since(released) > lease/2 {
			t.Errorf("after %v: %v; %v", time.Since(released), err1, err2)
		}
		time.Sleep(20 * time.Minute) // until no write without an answer can arrive, whichever got the key
	})
}

// secondInLine has two calls of a client wait for a key. A late write of the second is about to arrive, and by then the first is before it in
// their line.
func (c *client) secondInLine(t *testing.T) (first, second <-chan error) {
	t.Helper()
	const late = 4 * time.Second
	var sent atomic.Int64
	c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
		if purposeOf(op) == acquire {
			switch sent.Add(1) {
			case 1:
				return dynamofake.Refuse()
			case 2:
				return dynamofake.DeliverLate(late, io.ErrUnexpectedEOF)
			}
		}
		return dynamofake.Fault{}
	})
	retry := func(pause time.Duration) holdfast.Option {
		return holdfast.WithRetry(holdfast.Retry{Initial: pause, Max: pause})
	}
	first = c.taking(t, retry(2*time.Second)) // it rests while the second writes, and is back before that write arrives
	time.Sleep(20 * time.Millisecond)
	second = c.taking(t, retry(100*time.Millisecond))
	time.Sleep(late - 30*time.Millisecond)
	return first, second
}

// R15. The caller's Retry panics, and somebody recovers, as net/http does: what the call has written without an answer is given back.
func TestRetryPanics(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.LoseReply(io.ErrUnexpectedEOF)))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Retry was not asked")
				}
			}()
			_, _ = a.Acquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Delay: func(int) (time.Duration, bool) { panic("in Delay") }}))
		}()
		if err := <-b.taking(t); err != nil {
			t.Error(err)
		}
	})
}
