package holdfast

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// retry returns the function that an engine calls with each transient failure of a request.
func (c *Client) retry(r *request, loop *backoff.Loop) func(context.Context, error, <-chan struct{}) error {
	return func(ctx context.Context, err error, wake <-chan struct{}) error {
		c.log.Debug("acquisition is to be tried again", "key", r.key, "owner", r.owner, "error", err)
		if loop.Wait(ctx, wake) {
			return nil
		}
		return err
	}
}

// watch finds out whether the holders that made a try fail with refused are dead, on an engine that cannot know. It watches all keys at
// the same time. It returns nil when another try may get all of them, or one of them if one is set; otherwise the reason.
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
			again := c.retry(r, backoff.Policy{}.Start(c.clock)) // the engine bounds the failures: a user's Retry belongs to the try
			err := engine.Watch(ctx, &driver.Request{Key: r.key, Owner: r.owner, Mode: r.mode(), Reclaim: r.reclaim, Retry: again})
			err = c.withOwn(r, err)
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
		if err := <-ended; (err == nil) == one {
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

// withOwn notes in a HeldError whether a lock of this client is in the way of a request.
func (c *Client) withOwn(r *request, err error) error {
	if held := (*HeldError)(nil); errors.As(err, &held) {
		held.Own = c.own(r) != nil
	}
	return err
}
