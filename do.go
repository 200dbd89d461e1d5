package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// doReleaseTimeout is how long Do waits for the engine to confirm a release.
const doReleaseTimeout = 10 * time.Second

// Do acquires the lock of key, as [Client.Acquire] does, calls fn, and releases the lock when fn has returned. The ctx of fn ends
// with the given ctx or with the lock, with the lock's Err as its cause; fn must return soon then.
//
// Do waits for the engine to confirm the release, for 10 s at most and for 1 s once ctx has ended. Without confirmation, the error
// matches [ErrReleasePending] and the release goes on in the background.
//
// Do returns the errors of fn and of the release, joined. If the lock ended while fn ran, Do fails with [ErrLost], [ErrTTLExpired]
// or, after [Client.Close], [ErrClosed], in place of the error of fn's ctx. fn may release the lock itself. If fn panics or calls
// runtime.Goexit, the lock is released and the panic goes on.
func (c *Client) Do(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...Option) error {
	if fn == nil {
		return failed("do", key, errNoFunc())
	}
	return do(ctx, c, fn, func() (*Lock, error) { return c.Acquire(ctx, key, opts...) })
}

// TryDo is like [Client.Do], but acquires the lock as [Client.TryAcquire] does. If the key is held, fn is not called.
func (c *Client) TryDo(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...Option) error {
	if fn == nil {
		return failed("do", key, errNoFunc())
	}
	return do(ctx, c, fn, func() (*Lock, error) { return c.TryAcquire(ctx, key, opts...) })
}

// DoAll is like [Client.Do] with several keys, acquired as by [Client.AcquireAll]. The ctx of fn ends with the first of the locks.
func (c *Client) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context, locks *Locks) error, opts ...Option) error {
	if fn == nil {
		return fmt.Errorf("holdfast: do with %d keys: %w", len(keys), errNoFunc())
	}
	return do(ctx, c, fn, func() (*Locks, error) { return c.AcquireAll(ctx, keys, opts...) })
}

func errNoFunc() error { return driver.Invalid("fn", "it is nil") }

// held is a Lock or Locks.
type held interface {
	Err() error
	Context(parent context.Context) (context.Context, context.CancelFunc)
	Release(ctx context.Context) error
}

// do calls fn while what acquire returns is held, and releases it.
func do[H held](ctx context.Context, c *Client, fn func(context.Context, H) error, acquire func() (H, error)) (err error) {
	lock, err := acquire()
	if err != nil {
		return err
	}
	fnCtx, cancel := lock.Context(ctx)
	defer func() {
		ended := lock.Err()
		closed := ended == ErrReleased && c.closing.Err() != nil
		if ended != nil && context.Cause(fnCtx) == ended && (closed || ended != ErrReleased) && (err == ended || err == fnCtx.Err()) {
			err = nil // ErrClosed or the error of Release says more
		}
		cancel()
		if closed && err == nil {
			err = fmt.Errorf("holdfast: do: %w", ErrClosed)
		}
		releaseCtx, stop := linger(ctx)
		defer stop()
		releaseCtx, stop = context.WithTimeout(releaseCtx, doReleaseTimeout)
		defer stop()
		if end := doing(lock.Release(releaseCtx)); err == nil {
			err = end
		} else if end != nil {
			err = fmt.Errorf("%w; %w", err, end) // on one line
		}
	}()
	return fn(fnCtx, lock)
}

// doing makes errors of Release those of Do: the end of a lock is no failure of its release.
func doing(err error) error {
	var of *keyError
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		err = nil
		for _, one := range all.Unwrap() {
			err = errors.Join(err, doing(one))
		}
	} else if errors.As(err, &of) && (errors.Is(err, ErrLost) || errors.Is(err, ErrTTLExpired)) {
		return fmt.Errorf("holdfast: do %w", of)
	}
	return err
}
