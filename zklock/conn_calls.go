package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// retry runs f in the present session until it has an answer that neither a new connection nor
// time would change; all other errors of f match holdfast.ErrDisconnected. Between two tries again is asked; nil waits for a moment, so that the loop
// does not spin between the end of a connection and the word of it, and each time for longer, for a server that is too busy.
func (l *link) retry(ctx context.Context, again retryFunc, f func(s *session) error) error {
	for pause := 5 * time.Millisecond; ; {
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
			backoff.Sleep(ctx, jittered(pause), nil)
			pause = min(2*pause, s.times().Redial)
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

// await waits until done closes, for no longer than the present connection lasts.
func (l *link) await(ctx context.Context, done <-chan struct{}) {
	w := l.present()
	if w == nil {
		return
	}
	select {
	case <-done:
	case <-w.dead:
	case <-ctx.Done():
	}
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
	_, err := l.checkAll(ctx, []string{path})
	return err
}

// checkAll is check for several znodes. Of those that are not there, missing is the first.
func (l *link) checkAll(ctx context.Context, paths []string) (missing int, err error) {
	return call(ctx, l, "check", paths[0], func() (int, error) {
		ops := make([]any, len(paths))
		for i, path := range paths {
			ops[i] = &zk.CheckVersionRequest{Path: path, Version: -1}
		}
		replies, err := l.conn.Multi(ops...)
		return max(0, slices.IndexFunc(replies, func(r zk.MultiResponse) bool { return r.Error != nil })), err
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

// stat asks for what there is to know of a znode but its data, for which older servers require no permission.
func (l *link) stat(ctx context.Context, path string) (*zk.Stat, error) {
	return call(ctx, l, "look for", path, func() (*zk.Stat, error) {
		exists, stat, err := l.conn.Exists(path)
		if err == nil && !exists {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

// set writes to a znode if it has that version. ended, which is called also if ctx has ended
// by then, hears what came of it.
func (l *link) set(ctx context.Context, path string, data []byte, version int32, ended func(error)) (*zk.Stat, error) {
	return call(ctx, l, "write", path, func() (*zk.Stat, error) {
		stat, err := l.conn.Set(path, data, version)
		ended(err)
		return stat, err
	})
}

// delete deletes a znode of session s. again says that it may have done so before.
func (l *link) delete(ctx context.Context, s *session, path string, again bool) error {
	w := newWrite(s, path)
	w.alone = again
	l.tasks.Go(func(context.Context) { l.batches.do(w) })
	select {
	case o := <-w.done:
		return stepError("delete", path, o.err)
	case <-ctx.Done():
		return stepError("delete", path, driver.ContextError(ctx))
	}
}

// createParent creates a znode that does not end with the session.
func (l *link) createParent(ctx context.Context, path string, data []byte) error {
	return l.do(ctx, "create parent", path, func() error {
		create, kind := l.conn.CreateContainer, int32(zk.FlagContainer)
		if l.opts.PersistentParents {
			create, kind = l.conn.Create, zk.FlagPersistent
		}
		_, err := create(path, data, kind, l.opts.ParentACL)
		return err
	})
}

// listing is the outcome of a list.
type listing struct {
	names  []string
	stat   *zk.Stat
	err    error
	beside *listing // of another znode, if that was listed as well
}

// complete is why a list, or that of the znode beside, is missing; nil if none is.
func (l *listing) complete() error {
	if l.err == nil && l.beside != nil && !errors.Is(l.beside.err, zk.ErrNoNode) {
		return l.beside.err
	}
	return l.err
}

// list lists a znode, which blocks as go-zookeeper does.
func (l *link) list(path string) (one listing) {
	one.names, one.stat, one.err = l.conn.Children(path)
	return one
}

// listAll lists several znodes in one flight.
func (l *link) listAll(paths ...string) []listing {
	all := make([]listing, len(paths))
	var lists sync.WaitGroup
	for i, path := range paths {
		lists.Go(func() { all[i] = l.list(path) })
	}
	lists.Wait()
	return all
}

// lists lists a znode and, unless that is "", another one: in the same flight, or first.
func (l *link) lists(path, beside string, first bool) listing {
	switch {
	case beside == "":
		return l.list(path)
	case first:
		other := l.list(beside)
		one := l.list(path)
		one.beside = &other
		return one
	}
	all := l.listAll(path, beside)
	all[0].beside = &all[1]
	return all[0]
}

// createAndList sends the creation of an ephemeral sequential znode and the list of its
// siblings in one flight: a server carries out what one session sends in the order in
// which it was sent. go-zookeeper runs what it is handed too late in the next session, so the
// caller compares: if the session is still the one that the creation was meant for, the node
// is of that session. beside and first are as for lists.
func (l *link) createAndList(w *write, beside string, first bool) <-chan listing {
	listed := make(chan listing, 1)
	w.sent = make(chan bool, 1)
	l.tasks.Go(func(context.Context) { l.batches.do(w) })
	l.tasks.Go(func(context.Context) {
		if !<-w.sent {
			listed <- listing{err: zk.ErrNoServer}
			return
		}
		listed <- l.lists(dir(w.path), beside, first)
	})
	return listed
}

// creating is what is noted of a request under way that creates a znode, or several.
type creating struct {
	sent  func() // called when it is about to be sent, by the goroutine that sends
	czxid int64
}

// expectCreated makes the czxid of the node that is about to be created by this
// path be remembered until takeCreated: the zxid of the reply to a creation is
// the czxid of the node. What the application creates is none of our business.
func (l *link) expectCreated(path string, sent func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[path] = &creating{sent: sent}
}

func (l *link) noteSent(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.created[path]; c != nil && c.sent != nil {
		c.sent()
		c.sent = nil
	}
}

func (l *link) noteCreated(path string, zxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.created[path]; c != nil {
		c.czxid = zxid
	}
}

// takeCreated returns the czxid of the node that was created by this path, and
// forgets it; 0 if there was none.
func (l *link) takeCreated(path string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.created[path]
	delete(l.created, path)
	if c == nil {
		return 0
	}
	return c.czxid
}
