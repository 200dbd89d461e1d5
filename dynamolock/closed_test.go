package dynamolock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

var closedModes = []dynamolock.Mode{dynamolock.FailClosed, dynamolock.FailClosedFenced}

func TestFailClosedItem(t *testing.T) {
	for _, mode := range closedModes {
		bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
			a := h.client(t)
			defer a.close(t)
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
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			i = h.item("k")
			if (mode == dynamolock.FailClosed) != (i == nil) || i != nil && leaseOf(i) != 1 {
				t.Errorf("released: %v", i)
			}
			if next := a.hold(t, "k"); mode == dynamolock.FailClosedFenced && next.Token() != lock.Token()+1 {
				t.Errorf("token %v after %v", next.Token(), lock.Token())
			}
		})
	}
}

// A holder that cannot be reached for long goes on holding, and so it goes on
// when the holder is dead, until somebody breaks the lock.
func TestFailClosedNeverExpires(t *testing.T) {
	for _, mode := range closedModes {
		bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			a.conn.Cut()
			long, cancel := context.WithTimeout(t.Context(), 50*lease)
			defer cancel()
			if _, err := b.Acquire(long, "k"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%v: %v", mode, err)
			}
			if err := lock.Err(); err != nil {
				t.Errorf("%v: %v", mode, err)
			}
			a.conn.Heal()
			time.Sleep(lease)
			if err := lock.Verify(t.Context()); err != nil {
				t.Errorf("%v: %v", mode, err)
			}
		})
	}
}

func TestFailClosedBreak(t *testing.T) {
	for _, mode := range closedModes {
		bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			info := b.breakIt(t, "k", false)
			if err := b.Break(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
				t.Errorf("%v: for the second time: %v", mode, err)
			}
			next, err := b.TryAcquire(t.Context(), "k")
			if err != nil {
				t.Fatalf("%v: a lock that never expires is free when it is broken: %v", mode, err)
			}
			if d := took(func() { <-lock.Done() }); d > a.Options().Heartbeat+time.Second {
				t.Errorf("%v: the holder knew after %v", mode, d)
			}
			if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) {
				t.Errorf("%v: %v", mode, err)
			}
			time.Sleep(lease)
			if err := next.Verify(t.Context()); err != nil {
				t.Errorf("%v: the successor: %v", mode, err)
			}
			if err := b.Break(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
				t.Errorf("%v: of another grant by now: %v", mode, err)
			}
		})
	}
}

func TestFailClosedReclaim(t *testing.T) {
	for _, mode := range closedModes {
		bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			lock := a.hold(t, "k", holdfast.WithOwner("worker"))
			if _, err := b.TryAcquire(t.Context(), "k", holdfast.WithOwner("other"), holdfast.WithReclaim()); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%v: a stranger's: %v", mode, err)
			}
			next, err := b.TryAcquire(t.Context(), "k", holdfast.WithOwner("worker"), holdfast.WithReclaim())
			if err != nil {
				t.Fatalf("%v: %v", mode, err)
			}
			<-lock.Done()
			if err := lock.Err(); !errors.Is(err, holdfast.ErrReclaimed) {
				t.Errorf("%v: %v", mode, err)
			}
			time.Sleep(lease)
			if err := next.Verify(t.Context()); err != nil {
				t.Errorf("%v: %v", mode, err)
			}
		})
	}
}

// Replies are lost here as everywhere.
func TestFailClosedLostReplies(t *testing.T) {
	for _, mode := range closedModes {
		for name, fault := range lost {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					a.conn.SetFault(on(acquire, 1, fault))
					var lock *holdfast.Lock
					if d := took(func() { lock = a.hold(t, "k") }); d > lease/4 {
						t.Errorf("it took %v", d)
					}
					a.conn.SetFault(on(release, 1, fault))
					if err := lock.Release(t.Context()); err != nil {
						t.Error(err)
					}
					a.conn.SetFault(on(acquire, 1, fault))
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					defer cancel()
					if lock, err := a.Acquire(ctx, "k"); err == nil { // another request may have shown that all is well
						if err := lock.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
					time.Sleep(lease)
					if _, err := b.TryAcquire(t.Context(), "k"); err != nil {
						t.Errorf("an orphan: %v", err)
					}
				})
			})
		}
	}
}

// The two forms on one key: neither takes the other's for free.
func TestMixedModes(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		open := h.client(t)
		npm := h.client(t, func(o *dynamolock.Options) { o.Mode = dynamolock.FailClosed })
		fenced := h.client(t, func(o *dynamolock.Options) { o.Mode = dynamolock.FailClosedFenced })
		defer open.close(t)
		defer npm.close(t)
		defer fenced.close(t)

		tokenless := npm.hold(t, "a")
		ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
		defer cancel()
		for _, c := range []*client{open, fenced} {
			if _, err := c.Acquire(ctx, "a", holdfast.WithWait(lease)); !errors.Is(err, holdfast.ErrHeld) {
				t.Error(err)
			}
		}
		if err := tokenless.Verify(ctx); err != nil {
			t.Error(err)
		}

		if err := open.hold(t, "b").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		var foreign *dynamolock.ItemError
		if _, err := npm.TryAcquire(ctx, "b"); !errors.As(err, &foreign) {
			t.Errorf("%v, want an ItemError", err)
		}
		lock := fenced.hold(t, "b")
		if _, err := open.Acquire(t.Context(), "b", holdfast.WithWait(5*time.Minute)); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
	})
}
