package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// window is how a lease is divided for a command that runs under it:
//
//	|<------------------------ lease ------------------------>|
//	|<---------- trusted ---------->|<---- grace ---->|<drift>|
//	renewed                         lost: SIGTERM     SIGKILL others may have the lock
//
// What the client keeps off the lease as its margin is grace + drift. Drift is
// for clocks that run at different rates, and for the time that it takes to die.
type window struct {
	lease  time.Duration
	grace  time.Duration
	margin time.Duration
}

// errUnsteady is for an ensemble whose servers do not agree on what they give.
var errUnsteady = errors.New("ZooKeeper's servers keep giving session timeouts other than the one asked for")

// divide divides a lease. Without a grace given it is a fifth of the lease.
func divide(lease, grace time.Duration, given bool) (window, error) {
	if !given {
		grace = lease / 5
	}
	w := window{lease: lease, grace: grace, margin: grace + max(50*time.Millisecond, lease/20)}
	// The library takes half the lease at most, and would cut the rest off silently.
	if w.margin >= lease/2 {
		return w, usagef("--grace: %v, and %v for clocks and dying, is half of the lease, %v, or more: take a shorter grace or a longer --lease",
			grace, w.margin-grace, lease)
	}
	return w, nil
}

// connectToHold connects with the margin that a command needs. ZooKeeper's
// servers may not give the session timeout that was asked for; then what they
// give is divided, by another connection.
func (a *app) connectToHold(ctx context.Context, r *runFlags) (*client, window, error) {
	e, err := a.set.chosenEngine()
	if err != nil {
		return nil, window{}, err
	}
	lease := cmp.Or(a.set.lease, e.defaultLease())
	const attempts = 3 // an ensemble whose servers differ might never agree
	for i := range attempts {
		w, err := divide(lease, r.grace, r.graceSet)
		switch {
		case err != nil && i > 0:
			return nil, w, &exitError{exitUsage, fmt.Errorf("%w (the servers give no other)", err)}
		case err != nil:
			return nil, w, err
		}
		c, err := a.connect(ctx, connectOptions{owner: r.owner, holds: &w, waits: true})
		if err != nil {
			return nil, w, err
		}
		negotiated := c.lease()
		if negotiated == lease {
			return c, w, nil
		}
		a.log.Debug("the servers give another session timeout", "asked", lease, "given", negotiated)
		a.disconnect(c)
		lease = negotiated
	}
	return nil, window{}, errUnsteady
}
