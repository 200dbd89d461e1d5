package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// doReleaseTimeout bounds how long Do waits for the engine to confirm a
// release; delivery goes on in the background after it.
const doReleaseTimeout = 10 * time.Second

// Do acquires the lock of key, calls fn while it is held, waits for fn to
// return, and releases. The ctx of fn ends when the given one does or when the
// lock does, with the lock's Err as its cause: fn must return soon then, since
// somebody else may have the lock. The release has a context of its own, so
// that it happens although ctx is done.
//
// Do returns the errors of fn and of the release, joined. If the lock ended
// while fn ran, that is an error even if fn returned nil: [ErrLost] or
// [ErrTTLExpired]. If fn released the lock itself, that is none. If fn
// panics, or calls runtime.Goexit, the lock is released and the panic goes on.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context, lock *Lock) error, opts ...Option) (err error) {
	if fn == nil {
		return fmt.Errorf("holdfast: do %q: %w", clip(key), Invalid("fn", "it is nil"))
	}
	lock, err := l.Acquire(ctx, key, opts...)
	if err != nil {
		return err
	}
	fnCtx, cancel := context.WithCancel(lock.Context(ctx))
	defer func() {
		cancel()
		releaseCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), doReleaseTimeout)
		defer stop()
		err = errors.Join(err, lock.Release(releaseCtx))
	}()
	return fn(fnCtx, lock)
}
