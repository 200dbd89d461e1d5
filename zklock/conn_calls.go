package zklock

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// ready returns the present session, waiting for a connection if need be. While
// there is none, again is asked, like driver.Request.Retry; nil waits until ctx ends.
func (l *link) ready(ctx context.Context, again retryFunc) (*session, error) {
	for {
		if ctx.Err() != nil {
			return nil, disconnected(ctx)
		}
		l.mu.Lock()
		up, s, gate, lastErr := l.up, l.session, l.gate, l.lastErr
		l.mu.Unlock()
		if up {
			return s, nil
		}
		err := fmt.Errorf("zookeeper: %w", holdfast.ErrDisconnected)
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
		case <-ctx.Done():
		}
	}
}

// retryFunc is the type of driver.Request.Retry.
type retryFunc = func(ctx context.Context, err error, wake <-chan struct{}) error

// retry runs f in the present session until it has an answer that a new connection would
// not change; all other errors of f match holdfast.ErrDisconnected. Between two tries again is asked; nil waits for a moment, so that the loop
// does not spin between the end of a connection and the word of it.
func (l *link) retry(ctx context.Context, again retryFunc, f func(s *session) error) error {
	for {
		s, err := l.ready(ctx, again)
		if err != nil {
			return err
		}
		err = f(s)
		switch {
		case err == nil || !transient(err):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", err, driver.ContextError(ctx))
		case again == nil:
			backoff.Sleep(ctx, 5*time.Millisecond, nil)
		default:
			if err := again(ctx, err, l.wake()); err != nil {
				return err
			}
		}
	}
}

// wake returns a channel that closes when the connection that is down at present
// is up again; nil if it is not down.
func (l *link) wake() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		return nil
	}
	return l.gate
}

// call runs f, which may block in go-zookeeper for as long as the client is open, and
// returns what it returns, or ctx's error as soon as ctx ends. f then goes on. The error
// says what was attempted on which znode.
func call[T any](ctx context.Context, l *link, step, path string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	l.tasks.Go(func(context.Context) {
		value, err := f()
		done <- result{value, err}
	})
	select {
	case r := <-done:
		return r.value, stepError(step, path, r.err)
	case <-ctx.Done():
		var zero T
		return zero, stepError(step, path, driver.ContextError(ctx))
	}
}

// do is call for an f that returns nothing else.
func (l *link) do(ctx context.Context, step, path string, f func() error) error {
	_, err := call(ctx, l, step, path, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// sync makes the server catch up with the leader, without a transaction.
func (l *link) sync(ctx context.Context, path string) error {
	return l.do(ctx, "sync", path, func() error {
		_, err := l.conn.Sync(path)
		return err
	})
}

// check is a write to the quorum that changes nothing and succeeds only while a
// znode is there.
func (l *link) check(ctx context.Context, path string) error {
	return l.do(ctx, "check", path, func() error {
		_, err := l.conn.Multi(&zk.CheckVersionRequest{Path: path, Version: -1})
		return err
	})
}

// children lists a znode.
func (l *link) children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, l, "list", path, func() ([]string, error) {
		names, _, err := l.conn.Children(path)
		return names, err
	})
}

// znode is what a znode says of itself.
type znode struct {
	data []byte
	stat *zk.Stat
}

func (l *link) get(ctx context.Context, path string) (znode, error) {
	return call(ctx, l, "read", path, func() (znode, error) {
		data, stat, err := l.conn.Get(path)
		return znode{data, stat}, err
	})
}

func (l *link) delete(ctx context.Context, path string) error {
	return l.do(ctx, "delete", path, func() error { return l.conn.Delete(path, -1) })
}

// createParent creates a znode that has no data and does not end with the session.
func (l *link) createParent(ctx context.Context, path string) error {
	return l.do(ctx, "create parent", path, func() error {
		create, kind := l.conn.CreateContainer, int32(zk.FlagContainer)
		if l.opts.PersistentParents {
			create, kind = l.conn.Create, zk.FlagPersistent
		}
		_, err := create(path, nil, kind, l.opts.ParentACL)
		return err
	})
}

// created is the outcome of a creation.
type created struct {
	path  string
	czxid int64
	same  bool // it was made in the session that it was meant for
	err   error
}

// listing is the outcome of a list.
type listing struct {
	names []string
	err   error
}

// createAndList sends the creation of an ephemeral sequential znode and the list of its
// siblings in one flight: a server carries out what one session sends in the order in
// which it was sent. That the session is the same before and after shows that the node
// is of this session: go-zookeeper runs what it is handed too late in the next one.
func (l *link) createAndList(s *session, path string, data []byte) (<-chan created, <-chan listing) {
	made, listed := make(chan created, 1), make(chan listing, 1)
	l.tasks.Go(func(context.Context) {
		if !l.same(s) {
			made <- created{err: zk.ErrNoServer}
			return
		}
		// The new goroutine runs when this one has sent the creation and waits
		// for the reply. Should it be first all the same, the list lacks the
		// node, and is made again.
		l.tasks.Go(func(context.Context) {
			names, _, err := l.conn.Children(dir(path))
			listed <- listing{names, err}
		})
		l.expectCreated(path)
		full, err := l.conn.Create(path, data, zk.FlagEphemeral|zk.FlagSequence, l.opts.ACL)
		made <- created{path: full, czxid: l.takeCreated(path), same: l.same(s), err: err}
	})
	return made, listed
}

// expectCreated makes the czxid of the node that is about to be created by this
// path be remembered until takeCreated: the zxid of the reply to a creation is
// the czxid of the node. What the application creates is none of our business.
func (l *link) expectCreated(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[path] = 0
}

func (l *link) noteCreated(path string, zxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, expected := l.created[path]; expected {
		l.created[path] = zxid
	}
}

// takeCreated returns the czxid of the node that was created by this path, and
// forgets it; 0 if there was none.
func (l *link) takeCreated(path string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	zxid := l.created[path]
	delete(l.created, path)
	return zxid
}
