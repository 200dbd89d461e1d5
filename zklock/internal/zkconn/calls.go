package zkconn

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// ready returns the present session, waiting for a connection if need be. While
// there is none, again is asked, like driver.Request.Retry; nil waits until ctx ends.
func (l *Link) ready(ctx context.Context, again retryFunc) (*Session, error) {
	for {
		if ctx.Err() != nil {
			return nil, Disconnected(ctx)
		}
		l.mu.Lock()
		isOpen, s, gate, lastErr := l.isOpen, l.session, l.gate, l.lastErr
		l.mu.Unlock()
		switch {
		case isOpen:
			return s, nil
		case l.dialling.Err() != nil:
			return nil, driver.ErrClosed
		}
		if err := l.denied(); err != nil {
			return nil, err
		}
		err := fmt.Errorf("zookeeper: %w", driver.ErrDisconnected)
		if lastErr != nil {
			err = fmt.Errorf("%w: %w", err, lastErr)
		}
		if again != nil {
			if err := again(ctx, err, gate); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-gate:
		case <-l.dialling.Done():
		case <-ctx.Done():
		}
	}
}

// retryFunc is the type of driver.Request.Retry.
type retryFunc = func(ctx context.Context, err error, wake <-chan struct{}) error

// Retry runs f in the present session until it has an answer that neither a new connection nor time would change; all other errors of f
// match holdfast.ErrDisconnected. Between two tries again is asked; nil waits for a moment, so that the loop does not spin between the
// end of a connection and the word of it, and each time for longer, for a server that is too busy.
func (l *Link) Retry(ctx context.Context, again retryFunc, f func(s *Session) error) error {
	for pause := 5 * time.Millisecond; ; {
		s, err := l.ready(ctx, again)
		if err != nil {
			return err
		}
		err = f(s)
		if err == nil || !transient(err) {
			return err
		}
		if denied := l.denied(); denied != nil {
			return denied
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", err, driver.ContextError(ctx))
		case again == nil:
			backoff.Sleep(ctx, l.host, backoff.Jittered(pause), nil)
			pause = min(2*pause, s.Times().Redial)
		case l.Wire() != nil: // otherwise ready asks
			if err := again(ctx, err, nil); err != nil {
				return err
			}
		}
	}
}

// call runs f on the present connection. f may block in go-zookeeper until the connection ends. call returns ctx's error as soon as
// ctx ends, and f goes on. The error says what was attempted on which znode.
func call[T any](ctx context.Context, l *Link, step, path string, f func(conn *zk.Conn) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	conn := l.usableIn(nil)
	if conn == nil {
		var zero T
		return zero, StepError(step, path, zk.ErrNoServer)
	}
	l.tasks.Go(func(context.Context) {
		value, err := f(conn)
		done <- result{value, err}
	})
	select {
	case r := <-done:
		return r.value, StepError(step, path, r.err)
	case <-ctx.Done():
		var zero T
		return zero, StepError(step, path, driver.ContextError(ctx))
	}
}
