package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// AcquireAll takes the locks of all keys, or none, and waits as long as ctx and [WithWait] allow for all together. No key may
// occur twice.
//
// It takes the keys in the order of their bytes, so that calls with keys in common do not deadlock, and holds the first keys while
// it waits for the next. If one of the locks is lost meanwhile, AcquireAll releases all and starts again, as [WithRetry] says.
// Programs that call Acquire or AcquireAll while they hold other locks can still deadlock, and so can programs that use different
// names for one lock.
//
// [WithOwner], [WithData] and [WithReclaim] apply to each key. [WithRetry] counts the failures of all keys. [WithTTL] begins when
// all keys are held. OnEvent receives an acquisition for each key.
//
// When AcquireAll fails, all its locks have ended. It waits for the engine to confirm that while ctx and WithWait last, for 1 s at
// most. Errors are those of [Client.Acquire], or [ErrLost] with its cause if a lock was lost during the wait for another.
func (c *Client) AcquireAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	return c.acquireAll(ctx, keys, true, opts)
}

// TryAcquireAll takes the locks of all keys if all are free, and otherwise fails with the [*HeldError] of one. It may hold some of
// the keys for a moment. It waits for answers and watches silent holders as [Client.TryAcquire] does. The rest is as with
// [Client.AcquireAll].
func (c *Client) TryAcquireAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	return c.acquireAll(ctx, keys, false, opts)
}

func (c *Client) acquireAll(ctx context.Context, keys []string, wait bool, opts []Option) (*Locks, error) {
	fail := func(err error) (*Locks, error) {
		return nil, fmt.Errorf("holdfast: acquire all of %d keys: %w", len(keys), err)
	}
	requests, err := c.newRequests(keys, opts)
	if err != nil {
		return fail(err)
	}
	first := requests[0]
	if !wait && first.waitOK {
		return fail(driver.Invalid("wait", "TryAcquireAll does not wait"))
	}
	slices.SortFunc(requests, func(a, b *request) int { return strings.Compare(a.key, b.key) })
	for i, r := range requests[1:] {
		if r.key == requests[i].key {
			return fail(driver.Invalid("keys", "%q is there twice", clip(r.key)))
		}
	}
	callCtx, done, err := c.enter(ctx)
	if err != nil {
		return fail(err)
	}
	defer done()
	waitCtx, cancel := first.bound(callCtx)
	defer cancel()
	loop := first.retry.Start(c.clock)
	watched := wait
	for {
		locks, lost, err := c.tryAll(callCtx, waitCtx, requests, wait, loop)
		if err == nil {
			return locks, nil
		}
		again := lost != nil && waitCtx.Err() == nil && !errors.Is(lost, ErrReclaimed) // as in Acquire
		if !again && !watched {
			watched = true
			if err = c.watch(waitCtx, err, requests, false); err == nil {
				continue
			}
			err = c.unfinished(callCtx, waitCtx, first, err)
		}
		if !again {
			return fail(err)
		}
		c.log.Debug("acquisition is to be tried again", "key", first.key, "owner", first.owner, "error", lost)
		if !loop.Wait(waitCtx, nil) {
			return fail(c.unfinished(callCtx, waitCtx, first, err))
		}
	}
}

// newRequests returns a request for each key.
func (c *Client) newRequests(keys []string, opts []Option) ([]*request, error) {
	if len(keys) == 0 {
		return nil, driver.Invalid("keys", "there are none")
	}
	requests := make([]*request, len(keys))
	for i, key := range keys {
		r, err := c.newRequest(key, opts)
		if err != nil {
			return nil, err
		}
		requests[i] = r
	}
	return requests, nil
}

// tryAll takes the keys, one after the other. If that fails, it gives all back; lost is why one of the locks had ended meanwhile.
func (c *Client) tryAll(
	callCtx, waitCtx context.Context, requests []*request, wait bool, loop *backoff.Loop,
) (_ *Locks, lost, err error) {
	locks := newLocks(len(requests))
	complete := false
	defer func() {
		if !complete { // also if Retry.Delay has panicked
			locks.abandon(waitCtx)
		}
	}()
	for _, r := range requests {
		lock, err := c.acquireOne(callCtx, waitCtx, r, locks, wait, loop)
		if err != nil {
			return nil, locks.Err(), err
		}
		locks.add(lock)
	}
	if locks.Extend(requests[0].ttl) != nil { // one is over already
		return nil, locks.Err(), locks.Err()
	}
	complete = true
	return locks, nil, nil
}

// acquireOne takes one of the keys, without its TTL, which begins later. It gives up when one of the locks before it ends.
func (c *Client) acquireOne(
	callCtx, waitCtx context.Context, r *request, before *Locks, wait bool, loop *backoff.Loop,
) (*Lock, error) {
	a := c.feed.started(r.key, r, wait)
	defer a.failed(errUnwound)
	ctx, cancel := context.WithCancelCause(waitCtx)
	defer cancel(nil)
	stop := context.AfterFunc(before.live, func() { cancel(context.Cause(before.live)) })
	defer stop()
	withoutTTL := *r
	withoutTTL.ttl = 0
	lock, err := c.acquireKey(ctx, &withoutTTL, a, wait, loop)
	if err == nil {
		return lock, nil
	}
	if lost := before.Err(); lost != nil && waitCtx.Err() == nil {
		err = lost
	} else {
		err = c.unfinished(callCtx, waitCtx, r, err)
	}
	err = &keyError{r.key, err}
	a.failed(err)
	return nil, err
}
