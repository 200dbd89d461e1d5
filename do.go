package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// doReleaseTimeout is how long Do waits for the engine to confirm a release; delivery
// goes on in the background after it.
const doReleaseTimeout = 10 * time.Second

// Do acquires the lock of key, as [Client.Acquire] does, calls fn while it is held,
// waits for fn to return, and releases. The ctx of fn ends when the given one does or
// when the lock does, with the lock's Err as its cause: fn must return soon then, since
// somebody else may have the lock.
//
// When fn has returned, the lock is released, although ctx may be done by then, and Do
// waits for the engine to confirm that: for 10 s at most, and for no longer than 1 s
// once ctx is done. If no confirmation came, its error matches [ErrReleasePending],
// and delivery goes on in the background.
//
// Do returns the errors of fn and of the release, joined. If the lock ended
// while fn ran, that is an error even if fn returned nil: [ErrLost] or
// [ErrTTLExpired], or [ErrClosed] if that was by [Client.Close]. It takes the place of
// the error of fn's ctx. If fn released the lock itself, that is no error. If fn panics, or calls runtime.Goexit, the lock is released
// and the panic goes on.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...Option) error {
	if fn == nil {
		return failed("do", key, errNoFunc())
	}
	return do(ctx, fn, func() (*Lock, error) { return c.Acquire(ctx, key, opts...) })
}

// TryDo is like [Client.Do], but acquires the lock as [Client.TryAcquire] does: if
// another holds it, TryDo fails with a [*HeldError], and fn is not called.
func (c *Client) TryDo(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...Option) error {
	if fn == nil {
		return failed("do", key, errNoFunc())
	}
	return do(ctx, fn, func() (*Lock, error) { return c.TryAcquire(ctx, key, opts...) })
}

// DoAll is like [Client.Do] with the locks of several keys, acquired and released as by
// [Client.AcquireAll]: the ctx of fn ends when the first of them does, and the errors are
// those of all of them, but one for each cause of an end.
func (c *Client) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context, locks *Locks) error, opts ...Option) error {
	if fn == nil {
		return fmt.Errorf("holdfast: do with %d keys: %w", len(keys), errNoFunc())
	}
	return do(ctx, fn, func() (*Locks, error) { return c.AcquireAll(ctx, keys, opts...) })
}

func errNoFunc() error { return driver.Invalid("fn", "it is nil") }

// held is what do holds: a Lock, or Locks.
type held interface {
	Err() error
	Context(parent context.Context) (context.Context, context.CancelFunc)
	Release(ctx context.Context) error
	each() []*Lock // the first that has ended comes first
}

// do calls fn while what acquire returns is held, and releases it.
func do[H held](ctx context.Context, fn func(context.Context, H) error, acquire func() (H, error)) (err error) {
	lock, err := acquire()
	if err != nil {
		return err
	}
	fnCtx, cancel := lock.Context(ctx)
	defer func() {
		why := lock.Err() // what has ended the ctx of fn, if that was the lock
		if fnCtx.Err() == nil || context.Cause(fnCtx) != why {
			why = nil
		}
		var closed error
		for _, k := range lock.each() {
			closed = cmp.Or(closed, k.closed())
		}
		if why != nil && (why != ErrReleased || closed != nil) && (err == why || err == fnCtx.Err()) {
			err = nil
		}
		cancel()
		releaseCtx, stop := linger(ctx)
		defer stop()
		releaseCtx, stop = context.WithTimeout(releaseCtx, doReleaseTimeout)
		defer stop()
		err = cmp.Or(err, closed)
		_ = lock.Release(releaseCtx) // all of them, before the engine is asked about any
		err = errors.Join(append([]error{err}, outcomes(releaseCtx, lock.each())...)...)
	}()
	return fn(fnCtx, lock)
}

// outcomes are the errors of the releases of some locks. The end of a lock is no failure of its release.
func outcomes(ctx context.Context, locks []*Lock) (errs []error) {
	for _, k := range locks {
		err := k.Release(ctx)
		var of *keyError
		if errors.As(err, &of) && (errors.Is(of.err, ErrLost) || errors.Is(of.err, ErrTTLExpired)) {
			err = fmt.Errorf("holdfast: do %w", of)
		}
		errs = append(errs, err)
	}
	return errs
}
