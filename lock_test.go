package holdfast_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
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
		if err != nil && !errors.Is(err, holdfast.ErrTTLExpired) && !errors.Is(err, holdfast.ErrLost) { // a machine that stands still loses it
			t.Fatal(err)
		}
		if err := lock.Extend(0); err == nil {
			lock.Release(t.Context())
		}
	}
}
