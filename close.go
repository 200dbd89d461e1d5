package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	// grace is how long a call waits for the engine's confirmation after the end of its ctx or of the last lease.
	grace = time.Second
	// Close waits for mostEndless if a lease has more than this left, because such a lease never ends.
	endless     = 10 * 365 * 24 * time.Hour
	mostEndless = time.Minute
)

// Causes of the end of releases in Close.
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
	c.mu.Lock()
	terms := maps.Clone(c.terms) // no term begins once closed is set
	c.mu.Unlock()
	c.endLocks(terms)
	c.awaitLeads(ctx, terms) // before closing: a lead may need to know whether the engine is reachable
	c.feed.closing()
	ctx, cancel := linger(ctx) // the engine has the whole grace, even if a lead was slow
	defer cancel()
	c.endLocks(nil)
	c.unended.Wait() // other goroutines may be ending locks
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

// endLocks ends all locks for their holders, except those of the given terms.
func (c *Client) endLocks(except map[*Lock]*leadership) {
	c.mu.Lock()
	locks := slices.Concat(slices.Collect(maps.Values(c.held))...)
	c.mu.Unlock()
	for _, k := range locks {
		if except[k] == nil {
			k.endReleased()
		}
	}
}

// awaitLeads waits for the leads of the terms, whose ctx has ended, to return, for as long as the last lease would last unrenewed.
func (c *Client) awaitLeads(ctx context.Context, terms map[*Lock]*leadership) {
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
		case <-t.lock.done: // the key is lost already
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

// giveBack gives all keys back to the engine. Its error says what the engine has not confirmed.
func (c *Client) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.leaseLeft()+grace, errLeasesOver)
	defer cancel()
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.outstanding))
	c.mu.Unlock()
	var sessionEnd error
	if session, ok := c.engine.(driver.Ender); ok {
		err := session.EndSession(ctx)
		if err == nil {
			all = nil // even the locks whose release the engine has refused meanwhile
		} else {
			sessionEnd = fmt.Errorf("holdfast: close: %w: %w", ErrReleasePending, err)
		}
		c.giveUp(cmp.Or(err, errSessionEnded))
		for _, k := range c.endedByClose {
			if err != nil && k.hold.Release(c.background) == nil {
				c.noteRelease(k, nil) // the engine knows that this one is given back
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
	locks = slices.DeleteFunc(locks, func(k *Lock) bool { return !errors.Is(k.releErr, ErrReleasePending) })
	if len(locks) == 0 {
		return nil
	}
	why := locks[0].releErr
	if ctx.Err() != nil {
		why = fmt.Errorf("%w: %w", why, context.Cause(ctx))
	}
	more := ""
	if n := len(locks) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("holdfast: close: %q%s: %w", locks[0].key, more, why)
}

// linger returns a context that ends, with the error of ctx, when the grace has passed after the end of ctx: a deferred call whose ctx
// has ended still reaches the engine.
func linger(ctx context.Context) (context.Context, context.CancelFunc) {
	lingering, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel(driver.ContextError(ctx))
		case <-lingering.Done():
		}
	})
	return lingering, func() { stop(); cancel(nil) }
}
