package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

var three = []string{"a", "b", "c"}

// The first end of any is that of all, and never changes; the others stay held.
func TestLocksFirstEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, s := openStory(t, nil)
		locks := mustAll(t, l, three)
		ctx, cancel := locks.Context(t.Context())
		defer cancel()
		s.lose("b", holdfast.ErrBroken)
		first := locks.Err()
		var lost *holdfast.LostError
		if !closed(locks.Done()) || !errors.As(first, &lost) || lost.Key != "b" {
			t.Errorf("after the loss of b: %v", first)
		}
		synctest.Wait()
		if context.Cause(ctx) != first {
			t.Errorf("the cause of the context is %v, want %v", context.Cause(ctx), first)
		}
		if after, forget := locks.Context(t.Context()); context.Cause(after) != first {
			t.Errorf("a later context: %v", context.Cause(after))
		} else {
			forget()
		}
		if deadline := locks.Deadline(); deadline.After(time.Now()) {
			t.Errorf("the deadline is %v from now", time.Until(deadline))
		}
		s.lose("a", holdfast.ErrTakenOver)
		if locks.Err() != first {
			t.Errorf("Err changed to %v", locks.Err())
		}
		if err := locks.Lock("c").Err(); err != nil {
			t.Errorf("c: %v", err)
		}
		for name, err := range map[string]error{"Extend": locks.Extend(time.Hour), "Verify": locks.Verify(t.Context())} {
			if !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for range 2 {
			err := locks.Release(t.Context())
			if !errors.Is(err, holdfast.ErrBroken) || !errors.Is(err, holdfast.ErrTakenOver) || errors.Is(err, holdfast.ErrReleasePending) {
				t.Errorf("Release: %v", err)
			}
		}
		if err := locks.Lock("c").Err(); !errors.Is(err, holdfast.ErrReleased) {
			t.Errorf("c after Release: %v", err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Err never says nil when the Err of one of the locks does not, whatever goroutine ends it.
func TestLocksErrIsNotBehind(t *testing.T) {
	l, s := openStory(t, nil)
	defer mustClose(t, l)
	for range 5 {
		locks := mustAll(t, l, three)
		var wg sync.WaitGroup
		for _, key := range three {
			for range 200 { // it takes a while to end them all
				_, cancel := locks.Lock(key).Context(t.Context())
				defer cancel()
			}
			wg.Go(func() { s.lose(key, holdfast.ErrBroken) })
			wg.Go(func() {
				<-locks.Lock(key).Done()
				if locks.Err() == nil || !closed(locks.Done()) {
					t.Error("one has ended, and all are live")
				}
			})
		}
		wg.Wait()
		_ = locks.Release(t.Context())
	}
}

// One that is not confirmed does not keep the others, and ctx bounds the wait for all.
func TestLocksRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, s := openStory(t, nil)
		var releases atomic.Int64
		s.release = func(ctx context.Context) error {
			if releases.Add(1) == 2 {
				return hang(ctx)
			}
			time.Sleep(time.Second)
			return nil
		}
		locks := mustAll(t, l, three)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := locks.Release(ctx)
		if took := time.Since(began); took != time.Minute || !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", took, err)
		}
		if n := strings.Count(err.Error(), "holdfast: release"); n != 1 {
			t.Errorf("%d errors, want one: %v", n, err)
		}
		for _, lock := range locks.All() {
			if !errors.Is(lock.Err(), holdfast.ErrReleased) {
				t.Errorf("%q: %v", lock.Key(), lock.Err())
			}
		}
		_ = l.Close(ctx)
	})
}

// The TTL of all begins when all are held; Extend moves it for all, and the first to expire ends them as a whole.
func TestLocksTTL(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, s := openStory(t, nil)
		s.engine.acquire = slowly(s, time.Second)
		locks := mustAll(t, l, three, holdfast.WithTTL(2*time.Second))
		if left := time.Until(locks.Deadline()); left != 2*time.Second {
			t.Errorf("%v are left when all are held", left)
		}
		if err := locks.Extend(-1); !errors.Is(err, holdfast.ErrInvalid) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := locks.Extend(5 * time.Second); err != nil {
			t.Error(err)
		}
		if err := locks.Lock("b").Extend(3 * time.Second); err != nil {
			t.Error(err)
		}
		if left := time.Until(locks.Deadline()); left != 3*time.Second {
			t.Errorf("%v are left of the first", left)
		}
		<-locks.Done()
		if !errors.Is(locks.Err(), holdfast.ErrTTLExpired) || locks.Lock("a").Err() != nil {
			t.Errorf("%v; a: %v", locks.Err(), locks.Lock("a").Err())
		}
		if err := locks.Extend(time.Hour); !errors.Is(err, holdfast.ErrTTLExpired) {
			t.Errorf("Extend after the end: %v", err)
		}
		if err := locks.Release(t.Context()); !errors.Is(err, holdfast.ErrTTLExpired) {
			t.Error(err)
		}
		mustClose(t, l)
	})
}

// DoAll returns what fn and the releases say; a panic, or Goexit, gives everything back.
func TestDoAll(t *testing.T) {
	failed := errors.New("the work failed")
	for name, c := range map[string]struct {
		fn   func(s *story, ctx context.Context, locks *holdfast.Locks) error
		want error
	}{
		"nil":      {func(*story, context.Context, *holdfast.Locks) error { return nil }, nil},
		"an error": {func(*story, context.Context, *holdfast.Locks) error { return failed }, failed},
		"own release": {func(_ *story, ctx context.Context, l *holdfast.Locks) error {
			return l.Release(context.WithoutCancel(ctx))
		}, nil},
		"one released": {func(_ *story, ctx context.Context, l *holdfast.Locks) error {
			return l.Lock("b").Release(context.WithoutCancel(ctx))
		}, nil},
		"a loss": {func(s *story, ctx context.Context, l *holdfast.Locks) error {
			s.lose("b", holdfast.ErrBroken)
			<-ctx.Done()
			if cause := context.Cause(ctx); cause != l.Err() {
				return fmt.Errorf("ctx ended with %w", cause)
			}
			return nil
		}, holdfast.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := openStory(t, nil)
			err := l.DoAll(t.Context(), three, func(ctx context.Context, locks *holdfast.Locks) error { return c.fn(s, ctx, locks) })
			if !errors.Is(err, c.want) || (c.want == nil && err != nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			_ = l.Close(t.Context()) // after which the lost one is given back too
			if n := s.ended.Load(); n != 3 {
				t.Errorf("%d of 3 given back", n)
			}
		})
	}
	for name, stop := range map[string]func(){"panic": func() { panic("stop") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			l, s := openStory(t, nil)
			over := make(chan any)
			go func() {
				defer func() { over <- recover() }()
				_ = l.DoAll(t.Context(), three, func(context.Context, *holdfast.Locks) error { stop(); return nil })
			}()
			if got := <-over; name == "panic" && got != "stop" {
				t.Errorf("recovered %v", got)
			}
			if n := s.ended.Load(); n != 3 {
				t.Errorf("%d of 3 given back", n)
			}
			mustClose(t, l)
		})
	}
}

// Contexts, and what a call needs while it waits, are forgotten when they are over.
func TestLocksKeepNoContexts(t *testing.T) {
	l, _ := openStory(t, nil)
	defer mustClose(t, l)
	locks := mustAll(t, l, three)
	for _, lock := range locks.All() {
		if n := holdfast.Contexts(lock); n != 1 {
			t.Errorf("%q has %d contexts to end", lock.Key(), n)
		}
	}
	for range 100 {
		ctx, cancel := locks.Context(t.Context())
		if cancel(); ctx.Err() == nil {
			t.Fatal("the CancelFunc does not end the context")
		}
	}
	parent, end := context.WithCancel(t.Context())
	ctx, cancel := locks.Context(parent)
	defer cancel()
	if end(); ctx.Err() == nil {
		t.Error("the context outlives its parent")
	}
	for _, lock := range locks.All() {
		for end := time.Now().Add(time.Minute); holdfast.Contexts(lock) != 1; time.Sleep(time.Millisecond) { // a goroutine sees to it
			if time.Now().After(end) {
				t.Fatalf("%q has %d contexts to end", lock.Key(), holdfast.Contexts(lock))
			}
		}
	}
}

// Extend names the lock that has ended.
func TestExtendNamesTheLockThatHasEnded(t *testing.T) {
	c, err := memlock.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := c.AcquireAll(t.Context(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, locks.Lock("b"))
	if err := locks.Extend(time.Minute); !errors.Is(err, holdfast.ErrReleased) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("b was released: %v", err)
	}
	mustClose(t, c.Client)
}
