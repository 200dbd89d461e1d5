package dynamolock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// What a client has heard of a key long ago is no answer to a call that ends before it is told anything: neither a holder of that
// time, nor a failure.
func TestWaitEndsBeforeTheAnswer(t *testing.T) {
	calls := map[string]func(context.Context, *client) error{
		"acquire": func(ctx context.Context, c *client) error { _, err := c.Acquire(ctx, "k"); return err },
		"try":     func(ctx context.Context, c *client) error { _, err := c.TryAcquire(ctx, "k"); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				lock := a.hold(t, "k")
				b.isHeld(t, "k", lock.Token())
				mustRelease(t, lock)
				time.Sleep(10 * poll)
				b.conn.SetFault(always(dynamofake.DelayReply(time.Second)))
				err := call(within(t, 100*time.Millisecond), b)
				if errors.Is(err, holdfast.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("of one who has released it: %v", err)
				}

				b.conn.SetFault(nil)
				time.Sleep(2 * lease)
				lock = a.hold(t, "k")
				b.isHeld(t, "k", lock.Token())
				time.Sleep(10 * poll)
				b.conn.SetFault(always(dynamofake.Fail(errors.New("of long ago"))))
				if err = call(within(t, poll), b); err == nil {
					t.Error("granted")
				}
				time.Sleep(10 * poll)
				b.conn.SetFault(always(dynamofake.DelayReply(time.Second)))
				if err = call(within(t, 100*time.Millisecond), b); err == nil || errors.Is(err, holdfast.ErrHeld) || strings.Contains(err.Error(), "of long ago") {
					t.Errorf("of a failure: %v", err)
				}
				b.conn.SetFault(nil)
				time.Sleep(2 * lease)
				mustRelease(t, lock)
			})
		})
	}
}

// Nobody has the key, and a writer that waits, or another call of the same client, is before one that gives up: it was not
// disconnected.
func TestGivesUpBehindOthersOfAFreeKey(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, w := h.client(t), h.client(t), h.client(t)
		lock := a.hold(t, "k", shared)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = w.Acquire(ctx, "k")
		}()
		time.Sleep(2 * poll) // it keeps readers out
		w.conn.Cut()
		mustRelease(t, lock)
		gaveUp := func(what string, err error) {
			t.Helper()
			var held *holdfast.HeldError
			if !errors.As(err, &held) || !held.Holder.Held || errors.Is(err, holdfast.ErrDisconnected) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := b.TryAcquire(t.Context(), "k", shared)
		gaveUp("try", err)
		_, err = b.Acquire(t.Context(), "k", shared, holdfast.WithWait(2*poll))
		gaveUp("wait", err)
		results := make(chan error, 2)
		for i, opts := range [][]holdfast.Option{{shared}, nil} { // the second is behind the first
			go func() {
				_, err := b.Acquire(within(t, time.Duration(3-i)*poll), "k", opts...)
				results <- err
			}()
			time.Sleep(poll / 2)
		}
		gaveUp("acquire", <-results)
		gaveUp("acquire", <-results)
		cancel()
		<-ended
		w.conn.Heal()
	})
}
