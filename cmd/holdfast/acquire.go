package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// acquireFlags are the flags that run, elect and hold share.
type acquireFlags struct {
	key      string
	owner    string
	data     string
	wait     time.Duration
	try      bool
	reclaim  bool
	quiet    bool
	conflict int
	ttl      time.Duration
	shared   bool
	limit    int // 0: none
}

func (q *acquireFlags) addFlags(cmd *cobra.Command, ttlUsage string) {
	f := cmd.Flags()
	f.DurationVarP(&q.wait, "wait", "w", 0, "give up if the lock is not granted within this time (default: wait as long as it takes)")
	f.BoolVarP(&q.try, "try", "n", false, "give up at once if another client holds the lock; if the holder seems to be dead, find out first whether it is")
	f.IntVarP(&q.conflict, "conflict-exit-code", "E", exitNotAcquired, "exit status for \"not acquired\"")
	f.BoolVar(&q.shared, "shared", false, "share the lock with other clients that give --shared, such as readers")
	f.IntVar(&q.limit, "limit", 0, "let this many clients hold it at a time: a semaphore, for which all must give the same number")
	f.BoolVarP(&q.quiet, "quiet", "q", false, "report neither the holder while waiting, nor an outage of the engine")
	q.addHoldFlags(cmd, ttlUsage)
}

// addHoldFlags adds the flags for the time in which the lock is held.
func (q *acquireFlags) addHoldFlags(cmd *cobra.Command, ttlUsage string) {
	f := cmd.Flags()
	f.SortFlags = false
	f.DurationVar(&q.ttl, "ttl", 0, ttlUsage)
	f.StringVar(&q.owner, "owner", "", "owner name of this hold (default: host:pid:random)")
	f.BoolVar(&q.reclaim, "reclaim", false, "take over from an earlier process with the same --owner; two live processes must never share the name")
	f.StringVar(&q.data, "data", "", "text that \"holdfast show\" shows to others")
}

// check refuses invalid flags before anything is sent.
func (q *acquireFlags) check(cmd *cobra.Command) error {
	waits := cmd.Flags().Changed("wait")
	switch {
	case waits && q.try:
		return usagef("--wait and --try exclude each other")
	case waits && q.wait <= 0:
		return usagef("--wait: %v is not positive; leave it out to wait as long as it takes; --try does not wait", q.wait)
	case cmd.Flags().Changed("limit") && (q.limit < 1 || q.limit > holdfast.MaxLimit):
		return usagef("--limit: %d is not from 1 to %d", q.limit, holdfast.MaxLimit)
	case q.limit > 0 && q.shared:
		return usagef("--limit and --shared exclude each other")
	case (q.limit > 0 || q.shared) && len(q.data) > holdfast.MaxSharedData:
		return usagef("--data: %d bytes, at most %d are allowed with --shared or --limit", len(q.data), holdfast.MaxSharedData)
	case q.conflict < 0 || q.conflict > 255:
		return usagef("--conflict-exit-code: %d is not from 0 to 255", q.conflict)
	case q.reclaim && q.owner == "":
		return usagef("--reclaim needs --owner")
	case q.owner != "":
		return driver.CheckOwner("--owner", q.owner)
	}
	return nil
}

func (q *acquireFlags) options() []holdfast.Option {
	opts := []holdfast.Option{holdfast.WithData([]byte(q.data))}
	if q.owner != "" {
		opts = append(opts, holdfast.WithOwner(q.owner))
	}
	if q.reclaim {
		opts = append(opts, holdfast.WithReclaim())
	}
	if q.shared {
		opts = append(opts, holdfast.WithShared())
	}
	if q.limit > 0 {
		opts = append(opts, holdfast.WithLimit(q.limit))
	}
	if q.wait > 0 {
		opts = append(opts, holdfast.WithWait(q.wait))
	}
	return opts
}

// tellOutage is tellOutages while a lock is held, unless -q is given.
func (a *app) tellOutage(c *client, q *acquireFlags) (stop func()) {
	if q.quiet {
		return func() {}
	}
	return a.tellOutages(c, "the lock is lost unless the engine is back in time")
}

// acquire takes the lock. While it waits it reports the holder, unless -q is given.
func (a *app) acquire(ctx context.Context, c *client, q *acquireFlags, opts ...holdfast.Option) (*holdfast.Lock, error) {
	opts = append(opts, q.options()...)
	return acquireBy(ctx, a, c, q, func(ctx context.Context) (*holdfast.Lock, error) {
		if q.try {
			return c.TryAcquire(ctx, q.key, opts...)
		}
		return c.Acquire(ctx, q.key, opts...)
	})
}

// acquireAll takes the locks of several keys.
func (a *app) acquireAll(ctx context.Context, c *client, r *runFlags) (*holdfast.Locks, error) {
	return acquireBy(ctx, a, c, &r.acquireFlags, func(ctx context.Context) (*holdfast.Locks, error) {
		if r.try {
			return c.TryAcquireAll(ctx, r.all, r.options()...)
		}
		return c.AcquireAll(ctx, r.all, r.options()...)
	})
}

func acquireBy[L any](ctx context.Context, a *app, c *client, q *acquireFlags, acquire func(context.Context) (L, error)) (L, error) {
	a.log.Info("connected; the lock is asked for", "key", q.key)
	call := ctx
	switch {
	case q.try && c.Features().Ordered:
		bounded, cancel := a.bounded(ctx)
		defer cancel()
		call = bounded
	case !q.quiet: // on DynamoDB a try may wait too, for a holder that seems to be dead
		defer a.tellWaiting(ctx, c, q.key)()
	}
	lock, err := acquire(call)
	if held := (*holdfast.HeldError)(nil); errors.As(err, &held) && ctx.Err() == nil {
		err = held // without the prefix of the library, which repeats the key
		if q.wait > 0 {
			err = fmt.Errorf("%w; gave up after %v", held, q.wait)
		}
		err = &exitError{q.conflict, err}
	}
	return lock, err
}
