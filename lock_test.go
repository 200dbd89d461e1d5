package holdfast_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
)

// Err and Done are one fact, as for a context: they never contradict each other.
func TestErrAndDoneAgree(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // the window is short
	l := new(engine).open(t, driver.Config{})
	for range 8_000 {
		lock := acquire(t, l, "k")
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for lock.Err() == nil {
					runtime.Gosched()
				}
				if !closed(lock.Done()) {
					t.Error("Err is set, and Done is open")
				}
			})
		}
		wg.Go(func() { lock.Release(t.Context()) })
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// A lock that ended before its lease must not seem to have time left.
func TestDeadlineOfAnEndedLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		began := time.Now()
		broken, expired := acquire(t, l, "broken"), acquire(t, l, "expired")
		time.Sleep(time.Second)
		mustRelease(t, broken)
		time.Sleep(leaseLength)
		b.lease.Renew(b.host.Now())
		time.Sleep(time.Second)
		if got := broken.Deadline().Sub(began); got != time.Second {
			t.Errorf("the deadline of a lock released after 1 s is %v after the grant", got)
		}
		if got := expired.Deadline().Sub(began); got != validity {
			t.Errorf("the deadline of a lock lost after %v is %v after the grant", validity, got)
		}
	})
}

// If a grant was gone before its release, Release returns the engine's error.
func TestReleaseTellsWhyTheGrantWasGone(t *testing.T) {
	l := (&engine{release: func(context.Context) error {
		return errors.Join(holdfast.ErrLost, holdfast.ErrSessionExpired)
	}}).open(t, driver.Config{})
	err := acquire(t, l, "k").Release(t.Context())
	if !errors.Is(err, holdfast.ErrLost) || !errors.Is(err, holdfast.ErrSessionExpired) {
		t.Errorf("Release: %v, want ErrLost for ErrSessionExpired", err)
	}
}

// Verify is a call like the others: it ends when the client is closed.
func TestCloseEndsVerify(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var b *engine
		b = &engine{verify: func(ctx context.Context) error {
			defer func() {
				if b.closed.Load() {
					t.Error("the engine was closed while Verify was using it")
				}
			}()
			return hang(ctx)
		}}
		l := b.open(t, driver.Config{})
		lock := acquire(t, l, "k")
		verified := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { verified <- lock.Verify(ctx) }()
		synctest.Wait()
		mustClose(t, l)
		synctest.Wait()
		select {
		case err := <-verified:
			if !errors.Is(err, holdfast.ErrClosed) && !errors.Is(err, holdfast.ErrReleased) {
				t.Errorf("Verify: %v, want ErrClosed or ErrReleased", err)
			}
		default:
			t.Error("Verify went on after Close")
		}
	})
}

// contextOf is the context of a lock, without its CancelFunc.
func contextOf(ctx context.Context, k *holdfast.Lock) context.Context {
	ctx, cancel := k.Context(ctx)
	_ = cancel
	return ctx
}

// A Context holds on to nothing after its end, or when it is cancelled.
func TestContextIsForgotten(t *testing.T) {
	l := new(engine).open(t, driver.Config{})
	lock := acquire(t, l, "k")
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		child := contextOf(ctx, lock)
		cancel()
		<-child.Done()
	}
	for range 1000 {
		child, cancel := lock.Context(t.Context())
		cancel()
		if child.Err() == nil || context.Cause(child) != context.Canceled {
			t.Fatalf("a context that was cancelled: %v, cause %v", child.Err(), context.Cause(child))
		}
		cancel()
	}
	if err := lock.Err(); err != nil {
		t.Errorf("to cancel a context has ended its lock: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); holdfast.Contexts(lock) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the lock still knows %d contexts", holdfast.Contexts(lock))
		}
	}
}

// A lease forgets the locks that have ended before it.
func TestLeaseForgetsLocks(t *testing.T) {
	b := &engine{}
	l := b.open(t, driver.Config{})
	defer runtime.KeepAlive(b.lease)
	var locks []weak.Pointer[holdfast.Lock]
	for range 100 {
		lock := acquire(t, l, "k")
		mustRelease(t, lock)
		locks = append(locks, weak.Make(lock))
	}
	known := func() int {
		runtime.GC()
		return len(slices.DeleteFunc(slices.Clone(locks), func(p weak.Pointer[holdfast.Lock]) bool { return p.Value() == nil }))
	}
	for deadline := time.Now().Add(time.Minute); known() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d locks are still known", known())
		}
	}
}

// The clocks come first: an end that was due before the client learned of a break counts.
func TestEndThatWasDueBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, c := &engine{}, &drivertest.Clock{}
		lose := b.losing()
		l := b.open(t, driver.Config{Clock: c})
		c.Pause()
		for _, k := range []struct {
			ttl, after time.Duration
			want       error
		}{
			{time.Second, 2 * time.Second, holdfast.ErrTTLExpired},
			{0, validity, holdfast.ErrLeaseExpired},
		} {
			lock := acquire(t, l, "k", holdfast.WithTTL(k.ttl))
			time.Sleep(k.after)
			(*lose)(holdfast.ErrBroken)
			if err := lock.Err(); !errors.Is(err, k.want) {
				t.Errorf("TTL %v: %v, want %v", k.ttl, err, k.want)
			}
		}
	})
}

// hookedClock calls a function once, on the n-th call.
type hookedClock struct {
	drivertest.Clock
	n    int
	hook func()
}

func (c *hookedClock) Now() driver.Instant {
	if c.n--; c.n == 0 {
		c.hook()
	}
	return c.Clock.Now()
}

// If a TTL is extended while another goroutine finds it over, it is extended.
func TestExtendWhileTheTTLIsChecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := &hookedClock{}
		l := new(engine).open(t, driver.Config{Clock: c})
		c.Pause() // nothing but calls asks for the time
		lock := acquire(t, l, "k", holdfast.WithTTL(time.Second))
		c.hook = func() {
			if err := lock.Extend(time.Minute); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		c.n = 2 // the first question is the lease's, the second the old TTL's
		if err := lock.Err(); err != nil || c.n > 0 {
			t.Errorf("extended before the TTL passed, and it ended: %v", err)
		}
	})
}

// Of Extend and the end of the TTL, either wins, and what Extend returned is true.
func TestExtendAtTheTTL(t *testing.T) {
	l := new(engine).open(t, driver.Config{})
	for range 400 {
		lock := acquire(t, l, "k", holdfast.WithTTL(20*time.Microsecond))
		time.Sleep(15 * time.Microsecond)
		err := lock.Extend(time.Hour)
		if now := lock.Err(); (err == nil) != (now == nil) {
			t.Fatalf("Extend: %v; Err: %v", err, now)
		}
		if err != nil && !errors.Is(err, holdfast.ErrTTLExpired) {
			t.Fatal(err)
		}
		if err := lock.Extend(0); err == nil {
			lock.Release(t.Context())
		}
	}
}

func TestTTLJump(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, _, c := openFake(t)
		lock := acquire(t, l, "k", holdfast.WithTTL(time.Second))
		c.Jump(-time.Hour)
		time.Sleep(time.Second - 1)
		if err := lock.Err(); err != nil {
			t.Errorf("set back: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrTTLExpired) {
			t.Errorf("at the TTL: %v", err)
		}
		lock = acquire(t, l, "k", holdfast.WithTTL(time.Second))
		c.Jump(time.Second)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrTTLExpired) {
			t.Errorf("asleep past the TTL: %v", err)
		}
	})
}

// A loss that Verify finds ends the lock; an error that prevents Verify from asking does not.
func TestVerify(t *testing.T) {
	b := &engine{}
	l := b.open(t, driver.Config{})
	for _, c := range []struct{ answer, lost error }{
		{nil, nil},
		{holdfast.ErrDisconnected, nil},
		{errors.New("nonsense"), nil},
		{holdfast.ErrBroken, holdfast.ErrBroken},
		{errors.Join(holdfast.ErrLost, holdfast.ErrTakenOver), holdfast.ErrTakenOver},
		{holdfast.ErrSessionExpired, holdfast.ErrSessionExpired},
	} {
		b.verify = func(context.Context) error { return c.answer }
		lock := acquire(t, l, "k")
		err := lock.Verify(t.Context())
		if c.answer != nil && !errors.Is(err, c.answer) && !errors.Is(err, c.lost) || (c.answer == nil) != (err == nil) {
			t.Errorf("answer %v: Verify says %v", c.answer, err)
		}
		if now := lock.Err(); (now == nil) != (c.lost == nil) || (c.lost != nil && (!errors.Is(now, c.lost) || !errors.Is(now, holdfast.ErrLost))) {
			t.Errorf("answer %v: Err is %v, want %v", c.answer, now, c.lost)
		}
	}
}

// stuck is a log handler that blocks on the loss of a lock.
type stuck struct {
	slog.Handler

	handled chan struct{}
	release chan struct{}
}

func (s stuck) Enabled(context.Context, slog.Level) bool { return true }

func (s stuck) Handle(_ context.Context, record slog.Record) error {
	if record.Level == slog.LevelWarn {
		<-s.release
		close(s.handled)
	}
	return nil
}

// TestEndDoesNotWaitForTheLog: whoever finds that a TTL is over may be an engine, too.
func TestEndDoesNotWaitForTheLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := stuck{handled: make(chan struct{}), release: make(chan struct{})}
		timers := &drivertest.Clock{}
		l := (&engine{}).open(t, driver.Config{Logger: slog.New(s), Clock: timers})
		lock := acquire(t, l, "k", holdfast.WithTTL(time.Second))
		timers.Pause() // or its timer ends it
		time.Sleep(2 * time.Second)
		told := make(chan struct{})
		go func() {
			defer close(told)
			if err := lock.Err(); !errors.Is(err, holdfast.ErrTTLExpired) {
				t.Errorf("Err = %v", err)
			}
		}()
		synctest.Wait()
		if !closed(told) {
			t.Error("Err waits for the handler")
		}
		timers.Resume()
		close(s.release)
		mustClose(t, l)
		if !closed(s.handled) {
			t.Error("Close returned before the handler")
		}
	})
}

// TestLoseDoesNotWaitForTheLog checks that an engine does not wait for a log handler: it
// reports a loss on the goroutine that reads its replies, and the handler may be calling
// the engine.
func TestLoseDoesNotWaitForTheLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := stuck{handled: make(chan struct{}), release: make(chan struct{})}
		b := &engine{}
		lose := b.losing()
		l := b.open(t, driver.Config{Logger: slog.New(s)})
		lock := acquire(t, l, "k")
		told := make(chan struct{})
		go func() {
			(*lose)(holdfast.ErrBroken)
			close(told)
		}()
		synctest.Wait()
		if !closed(told) || !errors.Is(lock.Err(), holdfast.ErrBroken) {
			t.Errorf("Lose returned: %v; the lock: %v", closed(told), lock.Err())
		}
		close(s.release)
		mustClose(t, l)
		if !closed(s.handled) {
			t.Error("Close returned before the handler")
		}
	})
}

// R21. A call of Verify without an answer returns when the lock ends, with what Err returns.
func TestVerifyEndsWithTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(k *holdfast.Lock, lose func(error))
		want error
	}{
		"released": {func(k *holdfast.Lock, _ func(error)) { _ = k.Release(context.Background()) }, holdfast.ErrReleased},
		"TTL":      {func(k *holdfast.Lock, _ func(error)) { _ = k.Extend(time.Second) }, holdfast.ErrTTLExpired},
		"lost":     {func(_ *holdfast.Lock, lose func(error)) { lose(holdfast.ErrBroken) }, holdfast.ErrBroken},
		"lease":    {func(*holdfast.Lock, func(error)) {}, holdfast.ErrLeaseExpired},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := &engine{verify: hang}
				lose := b.losing()
				l := b.open(t, driver.Config{})
				locks := mustAll(t, l, three)
				last := locks.Lock("c") // that of which the loss is reported
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				verified := make(chan error, 1)
				go func() { verified <- last.Verify(ctx) }()
				time.Sleep(time.Millisecond)
				c.end(last, *lose)
				if err := <-verified; !errors.Is(err, c.want) || ctx.Err() != nil {
					t.Errorf("%v, want %v", err, c.want)
				}
				_ = locks.Release(t.Context())
				mustClose(t, l)
			})
		})
	}
}
