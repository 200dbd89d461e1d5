package holdfast_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
)

// leaseLength and its margin are those of the lease in these tests.
const (
	leaseLength = 10 * time.Second
	margin      = 500 * time.Millisecond
	validity    = leaseLength - margin
)

// engine is an engine under the control of a test: by default it grants every request, under one lease.
type engine struct {
	host  driver.Host
	lease *driver.Lease
	token atomic.Uint64

	acquire  func(context.Context, *driver.Request) (driver.Grant, error)
	verify   func(context.Context) error
	setData  func(context.Context, []byte) error
	release  func(context.Context) error
	inspect  func(context.Context, string) (driver.Info, error)
	observe  func(context.Context, string, func(driver.Info)) error
	checkKey func(string, driver.Mode) error
	brk      func(context.Context, driver.Info) error
	list     []driver.Info
	stop     func(context.Context) error
	ended    atomic.Int64 // calls of Hold.Release
	closed   atomic.Bool
}

// open makes a client of the engine; its lease begins now. A nil clock is the real one.
func (b *engine) open(t testing.TB, config driver.Config, onEvent ...func(holdfast.Event)) *holdfast.Client {
	t.Helper()
	if config.Margin == 0 {
		config.Margin = margin
	}
	client, err := holdfast.New(config, func(e holdfast.Event) {
		for _, tell := range onEvent {
			tell(e)
		}
	}, func(host driver.Host) (driver.Driver, error) {
		b.host = host
		b.lease = driver.NewLease(host, leaseLength, holdfast.ErrLeaseExpired)
		b.lease.Renew(host.Now())
		return b, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// openFake makes a client of an engine that grants everything, on a clock that can be paused and set.
func openFake(t testing.TB) (*holdfast.Client, *engine, *drivertest.Clock) {
	t.Helper()
	b, c := &engine{}, &drivertest.Clock{}
	return b.open(t, driver.Config{Clock: c}), b, c
}

// grant begins anew when the lease is over, as engines do: in real time a process may
// be stopped for longer than it lasts, and no grant would ever count again.
func (b *engine) grant() driver.Grant {
	if !b.lease.Live() {
		b.lease.Renew(b.host.Now())
	}
	return driver.Grant{Token: driver.Token(b.token.Add(1)), Lease: b.lease, Hold: b}
}

// losing has the engine grant every request, and returns what reports the loss of the last grant.
func (b *engine) losing() *func(error) {
	lose := new(func(error))
	b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		*lose = req.Lost
		return b.grant(), nil
	}
	return lose
}

func (b *engine) CheckKey(key string, mode driver.Mode) error {
	if b.checkKey != nil {
		return b.checkKey(key, mode)
	}
	return nil
}

func (b *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	if b.acquire != nil {
		return b.acquire(ctx, req)
	}
	return b.grant(), nil
}

func (b *engine) Verify(ctx context.Context) error { return run(ctx, b.verify) }

func (b *engine) SetData(ctx context.Context, data []byte) error {
	if b.setData != nil {
		return b.setData(ctx, data)
	}
	return nil
}

func (b *engine) Release(ctx context.Context) error {
	b.ended.Add(1)
	return run(ctx, b.release)
}

func (b *engine) Close(ctx context.Context) error {
	b.closed.Store(true)
	return run(ctx, b.stop)
}

func (b *engine) Inspect(ctx context.Context, key string) (driver.Info, error) {
	if b.inspect != nil {
		return b.inspect(ctx, key)
	}
	return driver.Info{Key: key}, nil
}

func (b *engine) List(context.Context, string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		for _, info := range b.list {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (b *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	if b.observe != nil {
		return b.observe(ctx, key, tell)
	}
	tell(driver.Info{Key: key})
	<-ctx.Done()
	return ctx.Err()
}

func (b *engine) Break(ctx context.Context, info driver.Info) error {
	if b.brk != nil {
		return b.brk(ctx, info)
	}
	return nil
}
func (b *engine) Ask(context.Context, driver.Info) error { return nil }

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

func acquire(t testing.TB, l *holdfast.Client, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lock, err := l.Acquire(ctx, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func mustClose(t testing.TB, l *holdfast.Client) {
	t.Helper()
	if err := l.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func mustRelease(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
