package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// acquireFlags are what run and hold have in common.
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
}

func (q *acquireFlags) addFlags(cmd *cobra.Command, ttlUsage string) {
	f := cmd.Flags()
	f.SortFlags = false
	f.DurationVarP(&q.wait, "wait", "w", 0, "give up if the lock is not granted within this time (default: wait as long as it takes)")
	f.BoolVarP(&q.try, "try", "n", false, "give up at once if somebody else holds the lock")
	f.IntVarP(&q.conflict, "conflict-exit-code", "E", exitNotAcquired, "exit status for \"not acquired\"")
	f.BoolVarP(&q.quiet, "quiet", "q", false, "do not say who holds the lock while waiting")
	f.DurationVar(&q.ttl, "ttl", 0, ttlUsage)
	f.StringVar(&q.owner, "owner", "", "owner name of this hold (default: host:pid:random)")
	f.BoolVar(&q.reclaim, "reclaim", false, "take over from an earlier process with the same --owner; two live processes must never share the name")
	f.StringVar(&q.data, "data", "", "text that others see with \"holdfast show\"")
}

// check refuses what makes no sense before anything is sent.
func (q *acquireFlags) check(cmd *cobra.Command) error {
	waits := cmd.Flags().Changed("wait")
	switch {
	case waits && q.try:
		return usagef("--wait and --try exclude each other")
	case waits && q.wait <= 0:
		return usagef("--wait: %v is not positive; leave it out to wait as long as it takes; --try does not wait", q.wait)
	case q.ttl < 0:
		return usagef("--ttl: %v is negative", q.ttl)
	case q.conflict < 0 || q.conflict > 255:
		return usagef("--conflict-exit-code: %d is not from 0 to 255", q.conflict)
	case q.reclaim && q.owner == "":
		return usagef("--reclaim needs --owner")
	case q.owner != "":
		return holdfast.CheckOwner("--owner", q.owner)
	}
	return nil
}

// options are those of the acquisition.
func (q *acquireFlags) options() []holdfast.Option {
	opts := []holdfast.Option{holdfast.WithData([]byte(q.data))}
	if q.owner != "" {
		opts = append(opts, holdfast.WithOwner(q.owner))
	}
	if q.reclaim {
		opts = append(opts, holdfast.WithReclaim())
	}
	if q.wait > 0 {
		opts = append(opts, holdfast.WithWait(q.wait))
	}
	return opts
}

// acquire takes the lock. Unless it is to be quiet, it says whom it waits for.
func (a *app) acquire(ctx context.Context, c *client, q *acquireFlags, opts ...holdfast.Option) (*holdfast.Lock, error) {
	a.log.Info("connected; the lock is asked for", "key", q.key)
	opts = append(opts, q.options()...)
	lock, err := func() (*holdfast.Lock, error) {
		if q.try {
			ctx, cancel := a.bounded(ctx)
			defer cancel()
			return c.TryAcquire(ctx, q.key, opts...)
		}
		if !q.quiet {
			defer a.tellWaiting(ctx, c, q.key)()
		}
		return c.Acquire(ctx, q.key, opts...)
	}()
	if held := (*holdfast.HeldError)(nil); errors.As(err, &held) && ctx.Err() == nil {
		return nil, q.notAcquired(held)
	}
	return lock, err
}

// notAcquired says who holds the lock. What the library puts before that has the key,
// too.
func (q *acquireFlags) notAcquired(held *holdfast.HeldError) error {
	err := error(held)
	if q.wait > 0 {
		err = fmt.Errorf("%w; gave up after %v", held, q.wait)
	}
	return &exitError{q.conflict, err}
}
