package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	// grace is for how long the engine's confirmation is waited for when ctx is done, or the last lease is over.
	grace = time.Second
	// A lease with this much time left, or more, never ends: Close then waits for mostEndless.
	endless     = 10 * 365 * 24 * time.Hour
	mostEndless = time.Minute
)

// Why Close has given up, or why nothing is left to be given back.
var (
	errLeasesOver   = errors.New("all leases are over")
	errSessionEnded = errors.New("the session has ended")
)

// Close ends the client. Waiting calls fail with [ErrClosed] and locks end with [ErrReleased], all at once; then Close gives the
// keys back to the engine and ends the session or the heartbeats. During the term of an [Election], Close first ends lead's ctx
// and waits for lead to return, until 1 s after the end of ctx and for one lease at most; only then the key is given back.
//
// Close waits for the engine's confirmation while ctx lasts and 1 s more, so it may be deferred with a ctx that has ended. It
// waits no longer than until 1 s after the end of the last lease (one minute for locks that never expire), so it returns even if
// the engine never answers. On DynamoDB, confirming abandoned acquisitions may take two more leases.
//
// Close returns nil if the engine has confirmed everything. An error that matches [ErrReleasePending] says what is not confirmed;
// it expires with its lease. [ErrLost] means that a lock had been lost before, if the engine can tell. When Close returns, the
// client has no goroutine left, but a running Fit of an [Election]. Further calls wait for the first and return its result.
//
// OnEvent, a log handler and [Retry].Delay must not call Close: Close would wait for itself.
func (c *Client) Close(ctx context.Context) error {
	err := c.valid()
	if err == nil && ctx == nil {
		err = errNoContext()
	}
	if err != nil {
		return fmt.Errorf("holdfast: close: %w", err)
	}
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		c.closeErr = c.shutdown(ctx)
		close(c.closeDone)
	}
	<-c.closeDone // a channel, which in a testing/synctest bubble lets time pass; sync.Once would not
	return c.closeErr
}

func (c *Client) shutdown(ctx context.Context) error {
	c.close(ErrClosed)
	c.calls.Wait() // they end at once: closing is part of their contexts
	c.endLocks(c.runningTerms())
	c.awaitLeads(ctx) // to whom it matters whether the engine can be reached
	c.feed.closing()
	ctx, cancel := linger(ctx) // only now: what a lead has taken of the grace is not left for the engine
	defer cancel()
	c.endLocks(nil)
	c.unended.Wait() // some may be under way elsewhere
	c.stopClocks()

	err := c.giveBack(ctx)
	if failed := c.engine.Close(ctx); failed != nil {
		err = errors.Join(err, fmt.Errorf("holdfast: close: %w", failed))
	}
	if err != nil {
		c.log.Warn("closed, and not all is confirmed by the engine", "error", err)
	}
	c.feed.close()
	return err
}

// endLocks ends all locks but those of some terms for their holders, before the engine is told of any.
func (c *Client) endLocks(but map[*Lock]*leadership) {
	c.mu.Lock()
	locks := slices.DeleteFunc(slices.Concat(slices.Collect(maps.Values(c.held))...), func(k *Lock) bool { return but[k] != nil })
	c.mu.Unlock()
	for _, k := range locks {
		k.endReleased()
	}
}

// runningTerms returns the terms whose lead runs.
func (c *Client) runningTerms() map[*Lock]*leadership {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.terms)
}

// awaitLeads waits for the leads of all elections, whose ctx has ended, to return: the key is not to be given back before. A lead
// that ignores its ctx is waited for until the last lease would be over if it were not renewed meanwhile.
func (c *Client) awaitLeads(ctx context.Context) {
	terms := c.runningTerms()
	if len(terms) == 0 {
		return
	}
	ctx, stop := linger(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, c.leaseLeft())
	defer cancel()
	for _, t := range terms {
		select {
		case <-t.returned:
		case <-t.lock.done: // there is nothing to be kept for it
		case <-ctx.Done():
			return
		}
	}
}

// leaseLeft returns what is left of the last lease of all locks that the engine does not have back.
func (c *Client) leaseLeft() time.Duration {
	now := c.clock.Now().Mono
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Duration(0)
	for k := range c.outstanding {
		left = max(left, k.lease.Deadline().Sub(now))
	}
	if left > endless {
		return mostEndless
	}
	return left
}

// giveBack gives back what the client has, and returns what was not confirmed.
func (c *Client) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.leaseLeft()+grace, errLeasesOver)
	defer cancel()
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.outstanding)) // those that are left, and those under way
	c.mu.Unlock()
	var sessionEnd error
	if session, ok := c.engine.(driver.Ender); ok {
		err := session.EndSession(ctx)
		if sessionEnd = err; err != nil {
			sessionEnd = fmt.Errorf("holdfast: close: %w: %w", ErrReleasePending, err)
		} else {
			all = nil // also those that the engine has refused to give back meanwhile
		}
		c.giveUp(cmp.Or(err, errSessionEnded))
		for _, k := range c.endedByClose {
			if err != nil && k.hold.Release(c.background) == nil {
				c.noteRelease(k, nil) // this one is confirmed
			} else {
				c.noteRelease(k, err)
			}
		}
	} else {
		stop := context.AfterFunc(ctx, func() { c.giveUp(context.Cause(ctx)) })
		defer stop()
	}
	c.releases.Wait()
	c.giveUp(ErrClosed)

	var errs []error
	for _, k := range c.endedByClose {
		if errors.Is(k.err, ErrReleased) && errors.Is(k.releErr, ErrLost) {
			errs = append(errs, failed("release", k.key, k.releErr))
		}
	}
	return errors.Join(append(errs, cmp.Or(unconfirmed(ctx, all), sessionEnd))...)
}

// unconfirmed is the error for the locks whose release the engine has not confirmed.
func unconfirmed(ctx context.Context, locks []*Lock) error {
	n, name, why := 0, "", error(nil)
	for _, k := range locks {
		if errors.Is(k.releErr, ErrReleasePending) {
			n, name, why = n+1, strconv.Quote(k.key), k.releErr
		}
	}
	if why == nil {
		return nil
	}
	if ctx.Err() != nil {
		why = fmt.Errorf("%w: %w", why, context.Cause(ctx))
	}
	if n > 1 {
		name += fmt.Sprintf(" and %d more", n-1)
	}
	return fmt.Errorf("holdfast: close: %s: %w", name, why)
}

// linger returns a context that ends when the grace has passed after the end of ctx, for the same cause: what is told the engine
// is told also if a caller's ctx is done, as it often is in a deferred call.
func linger(ctx context.Context) (context.Context, context.CancelFunc) {
	lingering, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(driver.ContextError(ctx))
		case <-lingering.Done():
		}
	})
	return lingering, func() { stop(); cancel(nil) }
}
