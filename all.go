package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	requests, ttl, err := c.newRequests(keys, wait, opts)
	if err != nil {
		return fail(err)
	}
	callCtx, done, err := c.enter(ctx)
	if err != nil {
		return fail(err)
	}
	defer done()
	waitCtx, cancel := requests[0].bound(callCtx)
	defer cancel()
	loop := requests[0].retry.policy().Start()
	watched := wait
	for {
		locks, again, err := c.tryAll(callCtx, waitCtx, requests, ttl, wait, loop)
		if err == nil {
			return locks, nil
		}
		if !again && !watched {
			watched = true
			if err = c.watch(waitCtx, err, requests, false); err == nil {
				continue
			}
			err = c.unfinished(callCtx, waitCtx, requests[0], err)
		}
		if !again {
			return fail(err)
		}
		if !loop.Wait(waitCtx, nil) {
			return fail(c.unfinished(callCtx, waitCtx, requests[0], err))
		}
	}
}

// newRequests checks the input of all keys, and returns a request for each, sorted, and the TTL, which is none of theirs since it
// begins later.
func (c *Client) newRequests(keys []string, wait bool, opts []Option) ([]*request, time.Duration, error) {
	if len(keys) == 0 {
		return nil, 0, driver.Invalid("keys", "there are none")
	}
	requests := make([]*request, len(keys))
	var ttl time.Duration
	for i, key := range keys {
		r, err := c.newRequest(key, opts)
		if err != nil {
			return nil, 0, err
		}
		if !wait && r.waitOK {
			return nil, 0, driver.Invalid("wait", "TryAcquireAll does not wait")
		}
		ttl, r.ttl = r.ttl, 0
		requests[i] = r
	}
	slices.SortFunc(requests, func(a, b *request) int { return strings.Compare(a.key, b.key) })
	for i, r := range requests[1:] {
		if r.key == requests[i].key {
			return nil, 0, driver.Invalid("keys", "%q is there twice", clip(r.key))
		}
	}
	return requests, ttl, nil
}

// tryAll takes the keys, one after the other. If that fails, it gives back what it has; again says that it is worth another try: a
// lock was lost while others were waited for.
func (c *Client) tryAll(
	callCtx, waitCtx context.Context, requests []*request, ttl time.Duration, wait bool, loop *backoff.Loop,
) (_ *Locks, again bool, _ error) {
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
			return nil, locks.Err() != nil && waitCtx.Err() == nil && c.again(r, locks.Err()), err
		}
		locks.add(lock)
	}
	if locks.Extend(ttl) != nil { // one is over already
		return nil, c.again(requests[0], locks.Err()), locks.Err()
	}
	complete = true
	return locks, false, nil
}

// acquireOne takes one of the keys. It gives up when one of the locks before it ends.
func (c *Client) acquireOne(
	callCtx, waitCtx context.Context, r *request, before *Locks, wait bool, loop *backoff.Loop,
) (*Lock, error) {
	a := c.feed.started(r.key, r, wait)
	defer a.failed(errUnwound)
	ctx, cancel := context.WithCancelCause(waitCtx)
	defer cancel(nil)
	stop := context.AfterFunc(before.live, func() { cancel(context.Cause(before.live)) })
	defer stop()
	lock, err := c.acquireKey(ctx, r, a, wait, loop)
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

// again reports whether the loss of a lock that was held while others were waited for is worth another try.
func (c *Client) again(r *request, lost error) bool {
	if errors.Is(lost, ErrReclaimed) {
		return false // as in Acquire: or two would take it from each other in turn
	}
	c.log.Debug("acquisition is to be tried again", "key", r.key, "owner", r.owner, "error", lost)
	return true
}
