package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// retries is what an engine calls with each transient failure of a request. When the engine was away for a lease, a try ends by
// giveUp.
func (c *Client) retries(
	r *request, loop *backoff.Loop, wait bool, giveUp context.CancelCauseFunc,
) func(context.Context, error, <-chan struct{}) error {
	failing := c.clock.Now() // since when nothing but failures is known
	tried := failing
	return func(ctx context.Context, err error, wake <-chan struct{}) error {
		c.log.Debug("acquisition is to be tried again", "key", r.key, "owner", r.owner, "error", err)
		if !wait && !r.passes && c.lease != nil {
			now, most := c.clock.Now(), c.lease()
			if now.Sub(tried) >= most { // a request that fails takes less: the engine has answered meanwhile
				failing = now
			}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, most-now.Sub(failing), errAway)
			defer cancel()
		}
		if loop.Wait(ctx, wake) {
			tried = c.clock.Now()
			return nil
		}
		if context.Cause(ctx) == errAway {
			giveUp(errAway) // the engine may know of a holder
			if !errors.Is(err, ErrDisconnected) {
				err = fmt.Errorf("%w: %w", errAway, err)
			}
		}
		return err
	}
}

// watch finds out whether the holders are dead that have made a try fail with refused, on an engine that cannot know. It watches
// all keys at the same time, and returns nil when another try may get all of them, or one of them if one is set; otherwise why
// not.
func (c *Client) watch(ctx context.Context, refused error, requests []*request, one bool) error {
	engine, ok := c.engine.(driver.Watcher)
	if !ok || ctx.Err() != nil || !errors.Is(refused, ErrHeld) {
		return refused
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(requests))
	for _, r := range requests {
		c.calls.Go(func() {
			loop := backoff.Policy{}.Start() // the engine bounds the failures: a user's Retry belongs to the try
			again := func(ctx context.Context, err error, wake <-chan struct{}) error {
				if loop.Wait(ctx, wake) {
					return nil
				}
				return err
			}
			err := engine.Watch(ctx, &driver.Request{Key: r.key, Owner: r.owner, Mode: r.mode(), Reclaim: r.reclaim, Retry: again})
			switch before := (*HeldError)(nil); {
			case err == nil:
			case errors.Is(err, ErrHeld) && errors.As(refused, &before) && before.Key == r.key:
				err = refused // with the holder's data, which the engine may have forgotten
			case len(requests) > 1:
				err = &keyError{r.key, err}
			}
			ended <- err
		})
	}
	for range requests {
		switch err := <-ended; {
		case err == nil && one:
			return nil
		case err != nil && !one:
			return err
		}
	}
	if one {
		return refused
	}
	return nil
}

// live returns the live locks of this client on a key.
func (c *Client) live(key string) []*Lock {
	c.mu.Lock()
	found := slices.Clone(c.held[key])
	c.mu.Unlock()
	return slices.DeleteFunc(found, func(k *Lock) bool { return k.Err() != nil })
}

// own returns a lock of this client that keeps a request from its key, or nil. Permits do so if there is none left for others.
func (c *Client) own(r *request) *Lock {
	for n, k := range c.live(r.key) {
		if !r.mode().SharesWith(k.mode) || n+1 == r.limit {
			return k
		}
	}
	return nil
}
