package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Locks are the locks of several keys, acquired by [Client.AcquireAll]. Each is a [Lock] of its own. As a whole they are live
// until the first of them ends; the others stay held until Release. All methods are safe for use by any goroutine.
type Locks struct {
	locks []*Lock         // in the order of their keys
	live  context.Context // ends with the first of them, with its Err as the cause
	end   context.CancelCauseFunc
}

func newLocks(n int) *Locks {
	l := &Locks{locks: make([]*Lock, 0, n)}
	l.live, l.end = context.WithCancelCause(context.Background())
	return l
}

func (l *Locks) add(k *Lock) {
	l.locks = append(l.locks, k)
	k.atEnd(l.live, l.end)
}

// Lock returns the lock of one of the keys, and nil for any other key.
func (l *Locks) Lock(key string) *Lock {
	for _, k := range l.locks {
		if k.key == key {
			return k
		}
	}
	return nil
}

// All returns the locks in the order of the bytes of their keys.
func (l *Locks) All() []*Lock { return slices.Clone(l.locks) }

// Done returns a channel that is closed when the first of the locks ends.
func (l *Locks) Done() <-chan struct{} {
	_ = l.Err() // compares the clocks
	if l.live == nil {
		return noEvents.done
	}
	return l.live.Done()
}

// Err returns nil while all locks are live, and then the [Lock.Err] of the first that was seen to end, which never changes.
func (l *Locks) Err() error {
	if l.live == nil {
		return errNotAcquired()
	}
	for _, k := range l.locks {
		if err := k.Err(); err != nil {
			l.end(err) // the goroutine that ended the lock may not have done so yet
			return context.Cause(l.live)
		}
	}
	return nil
}

// Deadline returns the earliest [Lock.Deadline] of the locks.
func (l *Locks) Deadline() time.Time {
	var first time.Time
	for i, k := range l.locks {
		if deadline := k.Deadline(); i == 0 || deadline.Before(first) {
			first = deadline
		}
	}
	return first
}

// Context is like [Lock.Context]: the context ends with the first of the locks, and its cause is what Err returns.
func (l *Locks) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if err := l.Err(); err != nil {
		return endedContext(parent, err)
	}
	ctx, cancel := context.WithCancelCause(parent)
	end := func(err error) {
		l.end(err) // so that both have one cause
		cancel(context.Cause(l.live))
	}
	forgets := make([]func(), len(l.locks))
	for i, k := range l.locks { // each ends ctx before its key is given back
		forgets[i] = k.atEnd(ctx, end)
	}
	return &lockContext{ctx, parent, l.Err, cancel}, func() {
		for _, forget := range forgets {
			forget()
		}
		cancel(nil)
	}
}

// Extend sets the TTL of each lock to d from now; 0 removes it. It sends nothing. It fails at the first lock that has ended.
func (l *Locks) Extend(d time.Duration) error {
	if l.live == nil {
		return failed("extend", "", errNotAcquired())
	}
	for _, k := range l.locks {
		if err := k.Extend(d); err != nil {
			return err
		}
	}
	return nil
}

// Verify calls [Lock.Verify] of one lock after the other until there is an error.
func (l *Locks) Verify(ctx context.Context) error {
	if l.live == nil {
		return failed("verify", "", errNotAcquired())
	}
	for _, k := range l.locks {
		if err := k.Verify(ctx); err != nil {
			return err
		}
	}
	if err := l.Err(); err != nil { // ended after the engine's answer about it
		return fmt.Errorf("holdfast: verify: %w", err)
	}
	return nil
}

// Release ends all locks for their holder and then tells the engine. It waits for all confirmations as long as ctx allows, and
// joins the errors of [Lock.Release]. Single locks may be released before.
func (l *Locks) Release(ctx context.Context) error {
	if l.live == nil {
		return failed("release", "", errNotAcquired())
	}
	if ctx == nil {
		return failed("release", l.locks[0].key, errNoContext())
	}
	for _, k := range slices.Backward(l.locks) {
		k.endReleased()
	}
	var errs []error
	for _, k := range slices.Backward(l.locks) {
		errs = append(errs, k.Release(ctx))
	}
	return errors.Join(errs...)
}

// abandon releases what was acquired before a failure. It waits for the engine while ctx lasts, for the grace at most.
func (l *Locks) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	_ = l.Release(ctx) // the caller receives the first error
}
