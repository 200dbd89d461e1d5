package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// errWaited is the cause of a wait that WithWait ended.
var errWaited = errors.New("wait elapsed")

// errAway ends a try that has taken a lease.
var errAway = fmt.Errorf("%w: no answer for a lease", ErrDisconnected)

// holderTimeout bounds the question for the holder after a wait has elapsed.
const holderTimeout = 250 * time.Millisecond

// Acquire takes the lock of key, and waits as long as ctx allows. ctx bounds only the wait, never the hold.
//
// When ctx ends, Acquire returns at once; its error matches ctx.Err() and [ErrHeld] or [ErrDisconnected]. The client undoes in the
// background what the call had begun. When [WithWait] elapses, the error is a [*HeldError], or [ErrDisconnected] if the engine has
// not answered. Other errors: [ErrInvalid], [ErrClosed], [ErrNames], [ErrDenied], [ErrReclaimed] (another client with the same owner
// name took this place by [WithReclaim]), and the engine's own.
func (c *Client) Acquire(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	return c.acquire(ctx, key, true, opts)
}

// TryAcquire takes the lock of key if it is free, and otherwise fails with a [*HeldError]. It waits for the engine's answer as
// long as ctx and [WithRetry] allow, for one lease at most, and then fails with [ErrDisconnected]. Other errors are those of
// Acquire.
//
// DynamoDB does not report that a holder died. If the last heartbeat of a holder is older than its lease, by the holder's clock,
// TryAcquire watches the key for that lease at most (mode FailOpen). It takes the key over if no heartbeat comes, and otherwise
// fails with the HeldError.
func (c *Client) TryAcquire(ctx context.Context, key string, opts ...Option) (*Lock, error) {
	return c.acquire(ctx, key, false, opts)
}

func (c *Client) acquire(ctx context.Context, key string, wait bool, opts []Option) (*Lock, error) {
	fail := func(err error) (*Lock, error) { return nil, failed("acquire", key, err) }
	r, err := c.newRequest(key, opts)
	if err != nil {
		return fail(err)
	}
	if !wait && r.waitOK {
		return fail(driver.Invalid("wait", "TryAcquire does not wait"))
	}
	callCtx, done, err := c.enter(ctx)
	if err != nil {
		return fail(err)
	}
	defer done()
	a := c.feed.started(key, r, wait)
	defer a.failed(errUnwound)
	waitCtx, cancel := r.bound(callCtx)
	defer cancel()
	lock, err := c.acquireKey(waitCtx, r, a, wait, r.retry.Start(c.clock))
	if err != nil && !wait {
		if err = c.watch(waitCtx, err, []*request{r}, false); err == nil {
			lock, err = c.acquireKey(waitCtx, r, a, wait, r.retry.Start(c.clock))
		}
	}
	if err == nil {
		return lock, nil
	}
	_, err = fail(c.unfinished(callCtx, waitCtx, r, err))
	a.failed(err)
	return nil, err
}

// unfinished adds to the error of acquireKey why there was no further try: the call's ctx or the wait has ended.
func (c *Client) unfinished(callCtx, waitCtx context.Context, r *request, err error) error {
	switch {
	case callCtx.Err() != nil:
		return c.explain(callCtx, err)
	case waitCtx.Err() != nil:
		return c.waited(callCtx, r, err)
	}
	return err
}

// waited is the error of a wait that has elapsed: a HeldError if the engine can name a holder.
func (c *Client) waited(ctx context.Context, r *request, err error) error {
	ctx, cancel := context.WithTimeout(ctx, holderTimeout)
	defer cancel()
	info, unasked := c.engine.Inspect(ctx, r.key)
	if held := (*HeldError)(nil); unasked == nil && info.Held {
		return c.withOwn(r, driver.Held(info))
	} else if errors.As(err, &held) {
		return held
	}
	return fmt.Errorf("%w after %v: %w", errWaited, r.wait, err)
}

// acquireKey asks the engine for one key until there is a grant or an error that stands.
func (c *Client) acquireKey(ctx context.Context, r *request, a *acquisition, wait bool, loop *backoff.Loop) (*Lock, error) {
	if r.reclaim && slices.ContainsFunc(c.live(r.key), func(k *Lock) bool { return k.owner == r.owner }) {
		return nil, c.withOwn(r, driver.Held(Info{Key: r.key, Held: true, Holder: Holder{Owner: r.owner}}))
	}
	if k := c.own(r); k != nil && wait {
		c.log.Warn("waiting for a lock of this client: locks are not re-entrant", "key", r.key, "owner", r.owner, "holder", k.owner)
	}
	if !wait && !r.passes && c.config.Lease != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.config.Lease(), errAway)
		defer cancel()
	}
	again := c.retry(r, loop)
	var behind sync.Once
	for {
		k := &Lock{
			client: c, key: r.key, owner: r.owner, mode: r.mode(),
			done: make(chan struct{}), writing: make(chan struct{}, 1), givenBack: make(chan struct{}),
		}
		grant, err := c.engine.Acquire(ctx, &driver.Request{
			Key: r.key, Owner: r.owner, Data: r.data, Mode: k.mode, Wait: wait, Reclaim: r.reclaim, Yield: r.yield,
			Retry: again,
			Queued: func(ahead int) {
				a.queued(r.key, ahead)
				c.log.Debug("waiting in the queue", "key", r.key, "owner", r.owner, "ahead", ahead)
			},
			Behind: func(other driver.Mode) {
				behind.Do(func() {
					c.log.Info("waiting behind another mode", "key", r.key, "owner", r.owner, "mode", r.mode().String(), "other", other.String())
				})
			},
			Lost:  k.lose,
			Asked: k.ask,
		})
		if err != nil {
			if context.Cause(ctx) == errAway && !errors.Is(err, ErrDisconnected) && !errors.Is(err, ErrHeld) {
				err = fmt.Errorf("%w: %w", errAway, err)
			}
			return nil, c.withOwn(r, err)
		}
		c.register(k)
		err = k.grant(grant, r.ttl, a)
		if err == nil {
			c.log.Debug("lock granted", "key", k.key, "owner", k.owner, "token", uint64(k.token))
			return k, nil
		}
		// The grant was over before the caller had it: the process was stopped, or another client broke it at once. Start over.
		c.lockEnded(k)
		if errors.Is(err, ErrReclaimed) {
			return nil, err
		}
		if err := again(ctx, fmt.Errorf("granted too late: %w", err), nil); err != nil {
			return nil, err
		}
	}
}

// errUnwound is the outcome of a call if a function of the caller, such as Retry.Delay, did not return.
var errUnwound = errors.New("holdfast: a function of the caller did not return: it panicked or ended its goroutine")

// AcquireAny takes the lock of the first free key, in the given order or shuffled by [WithRandomOrder]. If none is free, it fails
// with an error that joins the [*HeldError] of each. [WithWait] or [WithRetry] allow further passes, after the delays of the
// Retry. It never joins a queue. It watches silent holders as [Client.TryAcquire] does. Other errors are those of Acquire.
func (c *Client) AcquireAny(ctx context.Context, keys []string, opts ...Option) (*Lock, error) {
	fail := func(err error) (*Lock, error) {
		return nil, fmt.Errorf("holdfast: acquire any of %d keys: %w", len(keys), err)
	}
	requests, err := c.newRequests(keys, opts)
	if err != nil {
		return fail(err)
	}
	callCtx, done, err := c.enter(ctx)
	if err != nil {
		return fail(err)
	}
	defer done()
	first := requests[0]
	again := first.waitOK || first.retryOK
	for _, r := range requests {
		r.passes = again
	}
	a := c.feed.started("", first, again)
	defer a.failed(errUnwound)
	waitCtx, cancel := first.bound(callCtx)
	defer cancel()
	lock, err := c.tryAny(callCtx, waitCtx, requests, a, again)
	if err == nil {
		return lock, nil
	}
	_, err = fail(c.explain(callCtx, err))
	a.failed(err)
	return nil, err
}

// bound returns the context of the wait: WithWait ends it.
func (r *request) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if !r.waitOK {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, r.wait, errWaited)
}

// tryAny makes one pass over the requests, or as many as their Retry allows.
func (c *Client) tryAny(callCtx, ctx context.Context, requests []*request, a *acquisition, again bool) (*Lock, error) {
	first := requests[0]
	passes := first.retry.Start(c.clock)
	began := time.Now()
	watched := false
	for {
		if first.shuffle {
			rand.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		}
		var held []error
		for _, r := range requests {
			each := r.retry
			if each.Total > 0 { // of the whole call
				each.Total = max(each.Total-time.Since(began), 1)
			}
			lock, err := c.acquireKey(ctx, r, a, false, each.Start(c.clock))
			if err == nil {
				return lock, nil
			}
			if !errors.Is(err, ErrHeld) {
				if ctx.Err() == nil {
					return nil, &keyError{r.key, err}
				}
				if callCtx.Err() == nil {
					err = c.waited(callCtx, r, err)
				}
				return nil, errors.Join(append(held, err)...)
			}
			held = append(held, err)
		}
		if !again || !passes.Wait(ctx, nil) {
			err := errors.Join(held...)
			if watched || c.watch(ctx, err, requests, true) != nil {
				return nil, err
			}
			watched = true
		}
	}
}
