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

// AcquireAll takes the locks of all keys, or none, waiting for them as long as ctx
// allows. ctx bounds only the wait, never the hold; [WithWait] bounds the wait for all
// keys together. The keys may be any of one client, in any order, but no key may be there
// twice.
//
// It takes one key after the other, in the order of their bytes and not in the order
// given, so that calls with keys in common do not wait for each other in a circle. While
// it waits for a key it holds those before it. What it returns was live as a whole: when
// one of them is lost during the wait for another, AcquireAll gives all of them back and
// begins anew, after the delay and as often as [WithRetry] says.
//
// The order cannot help a program that waits for more while it holds something: calls of
// Acquire or AcquireAll under other locks can still deadlock. Nor does it help where
// programs have different names for the same lock, as a relative key and a path.
//
// [WithOwner], [WithData] and [WithReclaim] apply to each key. The Retry is that of the
// whole call: its Attempts count the failures of all keys. A [WithTTL] begins when all
// keys are held. Hooks see an acquisition for each key, one after the other.
//
// When AcquireAll fails, every lock that it had taken has ended, and has been given back
// or is given back in the background: it waits for the engine's confirmation while ctx
// and WithWait last, for 1 s at most. Errors are those of [Client.Acquire], with the key
// at which it failed. It fails with [ErrLost] and the cause if a lock was lost during the
// wait for another and there is no further try, and without a further try if the cause is
// [ErrReclaimed].
func (c *Client) AcquireAll(ctx context.Context, keys []string, opts ...Option) (*Locks, error) {
	return c.acquireAll(ctx, keys, true, opts)
}

// TryAcquireAll takes the locks of all keys if nobody has any of them, and fails with the
// [*HeldError] of one of those that are held otherwise. Until it has found that out, it
// may hold others of the keys for a moment. It does not wait for a live holder, but it does wait for the engine's answers, as
// [Client.TryAcquire] does. It watches the holders of all keys that seem to be dead at the same time, and holds none of the keys
// meanwhile. The rest is as with [Client.AcquireAll].
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

// newRequests checks the input of all keys, and returns a request for each, sorted, and
// the TTL, which is none of theirs since it begins later.
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

// tryAll takes the keys, one after the other. If that fails, it gives back what it has;
// again says that it is worth another try: a lock was lost while others were waited for.
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

// again reports whether the loss of a lock that was held while others were waited for is
// worth another try.
func (c *Client) again(r *request, lost error) bool {
	if errors.Is(lost, ErrReclaimed) {
		return false // as in Acquire: or two would take it from each other in turn
	}
	c.log.Debug("acquisition is to be tried again", "key", r.key, "owner", r.owner, "error", lost)
	return true
}
