package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// ctx bounds Close, which reports what it could not confirm.
func TestCloseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		failed := errors.New("the session would not end")
		b := &engine{release: hang, stop: func(context.Context) error { return failed }}
		l := b.open(t, driver.Config{})
		locks := []*holdfast.Lock{acquire(t, l, "a"), acquire(t, l, "b")}
		lost := acquire(t, l, "c", holdfast.WithTTL(1))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := l.Close(ctx)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v, ctx had a second, and the grace is another", took)
		}
		for _, want := range []error{holdfast.ErrReleasePending, context.DeadlineExceeded, failed} {
			if !errors.Is(err, want) {
				t.Errorf("%v does not tell %v", err, want)
			}
		}
		if errors.Is(err, holdfast.ErrTTLExpired) || !errors.Is(lost.Err(), holdfast.ErrTTLExpired) {
			t.Errorf("an end before Close is none of its errors: %v; %v", err, lost.Err())
		}
		synctest.Wait()
		for _, lock := range locks {
			if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrReleasePending) {
				t.Errorf("Release after Close gave up: %v", err)
			}
		}
		if again := l.Close(t.Context()); again != err {
			t.Errorf("again: %v", again)
		}
	})
}

// Each grant is released exactly once, and before the engine is closed, in any race.
func TestCloseUnderConcurrency(t *testing.T) {
	for range 50 {
		b := &engine{}
		var granted atomic.Int64
		b.acquire = func(context.Context, *driver.Request) (driver.Grant, error) {
			granted.Add(1)
			return b.grant(), nil
		}
		b.release = func(context.Context) error {
			if b.closed.Load() {
				t.Error("the engine was used after its Close")
			}
			return nil
		}
		l := b.open(t, driver.Config{})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 500 { // or a slow machine would never finish releasing them
					lock, err := l.Acquire(t.Context(), "k", holdfast.WithTTL(time.Duration(i)*20*time.Microsecond))
					if err != nil {
						if !errors.Is(err, holdfast.ErrClosed) {
							t.Error(err)
						}
						return
					}
					if i%2 == 0 {
						go lock.Release(t.Context())
					}
				}
			})
		}
		time.Sleep(200 * time.Microsecond)
		mustClose(t, l)
		wg.Wait()
		if granted.Load() != b.ended.Load() {
			t.Errorf("%d grants, %d given back", granted.Load(), b.ended.Load())
		}
	}
}

// ender is an engine with a session.
type ender struct {
	*engine
	end func(context.Context) error
}

func (e ender) EndSession(ctx context.Context) error { return e.end(ctx) }

// R20. The engine refuses to give back a lock while the client closes, and then confirms the end of the session, which has given it back.
func TestCloseAfterARefusedRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		closing, denied := make(chan struct{}), errors.New("denied")
		b := &engine{release: func(context.Context) error {
			<-closing
			return denied
		}}
		c, err := holdfast.New(driver.Config{Margin: margin}, nil, func(host driver.Host) (driver.Driver, error) {
			b.host, b.lease = host, driver.NewLease(host, leaseLength, holdfast.ErrLeaseExpired)
			b.lease.Renew(host.Now())
			return ender{b, func(context.Context) error {
				close(closing)
				time.Sleep(time.Millisecond)
				return nil
			}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		k := acquire(t, c, "k")
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := k.Release(now); !errors.Is(err, holdfast.ErrReleasePending) {
			t.Errorf("Release: %v", err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
