package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// One call is in the engine at a time, in the order of the calls, also after one that was given up.
func TestSetDataOneAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		client := b.open(t, driver.Config{})
		defer mustClose(t, client)
		var at atomic.Int64
		var got []string
		b.setData = func(ctx context.Context, data []byte) error {
			if at.Add(1) > 1 {
				t.Error("two calls at the same time")
			}
			defer at.Add(-1)
			select {
			case <-time.After(time.Second):
				got = append(got, string(data))
				return nil
			case <-ctx.Done():
				time.Sleep(time.Millisecond)
				got = append(got, "given up")
				return holdfast.ErrDisconnected
			}
		}
		lock := acquire(t, client, "k")
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		done := make(chan error, 3)
		for i, ctx := range []context.Context{short, t.Context(), t.Context()} {
			go func() { done <- lock.SetData(ctx, []byte{'a' + byte(i)}) }()
			time.Sleep(time.Microsecond)
		}
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected) {
			t.Errorf("given up: %v", err)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if want := []string{"given up", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("the engine was given %q, want %q", got, want)
		}
		mustRelease(t, lock)
	})
}

// A call in the engine, and one that waits behind it, return when the lock ends, with its end.
func TestSetDataEndsWithTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{setData: func(ctx context.Context, _ []byte) error { return hang(ctx) }}
		client := b.open(t, driver.Config{})
		lose := b.losing()
		for name, c := range map[string]struct {
			end  func(*holdfast.Lock)
			want error
		}{
			"released": {func(lock *holdfast.Lock) { mustRelease(t, lock) }, holdfast.ErrReleased},
			"TTL":      {func(lock *holdfast.Lock) { _ = lock.Extend(time.Second) }, holdfast.ErrTTLExpired},
			"lost":     {func(*holdfast.Lock) { (*lose)(holdfast.ErrBroken) }, holdfast.ErrBroken},
		} {
			lock := acquire(t, client, "k")
			done := make(chan error, 2)
			for range 2 {
				go func() { done <- lock.SetData(t.Context(), nil) }()
			}
			time.Sleep(time.Millisecond)
			c.end(lock)
			for range 2 {
				if err := <-done; !errors.Is(err, c.want) || !errors.Is(err, lock.Err()) {
					t.Errorf("%s: %v, want %v", name, err, c.want)
				}
			}
		}
		lock := acquire(t, client, "k")
		done := make(chan error, 1)
		go func() { done <- lock.SetData(t.Context(), nil) }()
		time.Sleep(time.Millisecond)
		mustClose(t, client)
		if err := <-done; !errors.Is(err, holdfast.ErrReleased) && !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// The engine gets a copy, and nil for empty data. A loss that it finds ends the lock.
func TestSetData(t *testing.T) {
	b := &engine{}
	client := b.open(t, driver.Config{})
	defer mustClose(t, client)
	lock := acquire(t, client, "k")
	var got []byte
	b.setData = func(_ context.Context, data []byte) error { got = data; return nil }
	mine := []byte("mine")
	if err := lock.SetData(t.Context(), mine); err != nil {
		t.Error(err)
	}
	mine[0] = 'x'
	if string(got) != "mine" {
		t.Errorf("the engine has %q", got)
	}
	if err := lock.SetData(t.Context(), []byte{}); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	b.setData = func(context.Context, []byte) error { return holdfast.ErrDenied }
	if err := lock.SetData(t.Context(), mine); !errors.Is(err, holdfast.ErrDenied) || lock.Err() != nil {
		t.Errorf("%v, and the lock: %v", err, lock.Err())
	}
	b.setData = func(context.Context, []byte) error { return holdfast.ErrTakenOver }
	if err := lock.SetData(t.Context(), mine); !errors.Is(err, holdfast.ErrTakenOver) || !errors.Is(err, holdfast.ErrLost) {
		t.Error(err)
	}
	if err := lock.Err(); !errors.Is(err, holdfast.ErrTakenOver) {
		t.Errorf("Err: %v", err)
	}
}
