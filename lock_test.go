package holdfast_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Err and Done are one fact, as they are for a context: whoever has seen one of
// them must not be told otherwise by the other.
func TestErrAndDoneAgree(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // the window is short
	l := new(backend).open(t, holdfast.Config{})
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

// A lock that ended while the lease lives on must not seem to have time left.
func TestDeadlineOfAnEndedLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		began := time.Now()
		broken, expired := acquire(t, l, "broken"), acquire(t, l, "expired")
		time.Sleep(time.Second)
		if err := broken.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
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

// What the engine says of a grant that was gone before it was released is kept.
func TestReleaseTellsWhyTheGrantWasGone(t *testing.T) {
	l := (&backend{release: func(context.Context) error {
		return errors.Join(holdfast.ErrLost, holdfast.ErrSessionExpired)
	}}).open(t, holdfast.Config{})
	err := acquire(t, l, "k").Release(t.Context())
	if !errors.Is(err, holdfast.ErrLost) || !errors.Is(err, holdfast.ErrSessionExpired) {
		t.Errorf("Release: %v, want ErrLost for ErrSessionExpired", err)
	}
}

// Verify is a call like the others: it ends when the client is closed.
func TestCloseEndsVerify(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var b *backend
		b = &backend{verify: func(ctx context.Context) error {
			defer func() {
				if b.closed.Load() {
					t.Error("the backend was closed while Verify was using it")
				}
			}()
			return hang(ctx)
		}}
		l := b.open(t, holdfast.Config{})
		lock := acquire(t, l, "k")
		verified := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { verified <- lock.Verify(ctx) }()
		synctest.Wait()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
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
