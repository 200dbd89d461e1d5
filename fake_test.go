package holdfast_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// leaseLength and its margin are what the locks of these tests rest on.
const (
	leaseLength = 10 * time.Second
	margin      = 500 * time.Millisecond
	validity    = leaseLength - margin
)

// backend is an engine that does as it is told: by default it grants whatever
// is asked for, under one lease that nobody renews before it is over.
type backend struct {
	host  *holdfast.Host
	lease *holdfast.Lease
	token atomic.Uint64

	acquire  func(context.Context, *holdfast.Request) (holdfast.Grant, error)
	verify   func(context.Context) error
	release  func(context.Context) error
	inspect  func(context.Context, string) (holdfast.Info, error)
	checkKey func(string) error
	list     []holdfast.Info
	stop     func(context.Context) error
	ended    atomic.Int64 // calls of Hold.Release
	closed   atomic.Bool
}

// open makes a client of the backend, whose lease begins now. The clock is
// nil for one that nobody touches.
func (b *backend) open(t testing.TB, config holdfast.Config) *holdfast.Locker {
	t.Helper()
	if config.Margin == 0 {
		config.Margin = margin
	}
	locker, err := holdfast.New(config, func(host *holdfast.Host) (holdfast.Backend, error) {
		b.host = host
		b.lease = host.NewLease(leaseLength, holdfast.ErrLeaseExpired)
		b.lease.Renew(host.Now())
		return b, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return locker
}

// openFake makes a client of a backend that grants everything, on a clock that
// can be paused and set.
func openFake(t testing.TB) (*holdfast.Locker, *backend, *clock.Fake) {
	t.Helper()
	b, c := &backend{}, &clock.Fake{}
	return b.open(t, holdfast.Config{Clock: c}), b, c
}

// grant begins anew when the lease is over, as engines do: in real time a process may
// be stopped for longer than it lasts, and no grant would ever count again.
func (b *backend) grant() holdfast.Grant {
	if !b.lease.Live() {
		b.lease.Renew(b.host.Now())
	}
	return holdfast.Grant{Token: holdfast.Token(b.token.Add(1)), Lease: b.lease, Hold: b}
}

func (b *backend) CheckKey(key string) error {
	if b.checkKey != nil {
		return b.checkKey(key)
	}
	return nil
}

func (b *backend) Acquire(ctx context.Context, req *holdfast.Request) (holdfast.Grant, error) {
	if b.acquire != nil {
		return b.acquire(ctx, req)
	}
	return b.grant(), nil
}

func (b *backend) Verify(ctx context.Context) error { return run(ctx, b.verify) }

func (b *backend) Release(ctx context.Context) error {
	b.ended.Add(1)
	return run(ctx, b.release)
}

func (b *backend) Close(ctx context.Context) error {
	b.closed.Store(true)
	return run(ctx, b.stop)
}

func (b *backend) Inspect(ctx context.Context, key string) (holdfast.Info, error) {
	if b.inspect != nil {
		return b.inspect(ctx, key)
	}
	return holdfast.Info{Key: key}, nil
}

func (b *backend) List(context.Context, string) iter.Seq2[holdfast.Info, error] {
	return func(yield func(holdfast.Info, error) bool) {
		for _, info := range b.list {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (b *backend) Break(context.Context, holdfast.Info) error { return nil }

func run(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

// hang is an engine that never answers.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return holdfast.ErrDisconnected
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func acquire(t testing.TB, l *holdfast.Locker, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lock, err := l.Acquire(ctx, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
