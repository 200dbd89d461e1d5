package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// window divides the lease of a running command:
//
//	|<------------------------ lease ------------------------>|
//	|<---------- trusted ---------->|<---- grace ---->|<drift>|
//	renewed                         lost: SIGTERM     SIGKILL others may have the lock
//
// The client's margin is grace + drift. Drift allows for clocks that run at different rates, and for the time that a process takes to die.
type window struct {
	lease  time.Duration
	grace  time.Duration
	margin time.Duration
}

// errUnsteady is for an ensemble whose servers keep negotiating other session timeouts.
var errUnsteady = errors.New("ZooKeeper's servers keep giving session timeouts other than the one asked for")

// divide divides a lease. The default grace is a fifth of it.
func divide(lease, grace time.Duration, given bool) (window, error) {
	if !given {
		grace = lease / 5
	}
	w := window{lease: lease, grace: grace, margin: grace + max(50*time.Millisecond, lease/20)}
	// The library takes half the lease at most, and would silently reduce a greater margin.
	if w.margin >= lease/2 && !given {
		return w, usagef("--lease: %v is too short for a command: half of it has to be more than %v for the grace and %v for clocks and dying",
			lease, grace, w.margin-grace)
	}
	if w.margin >= lease/2 {
		return w, usagef("--grace: %v, and %v for clocks and dying, is half of the lease, %v, or more: take a shorter grace or a longer --lease",
			grace, w.margin-grace, lease)
	}
	return w, nil
}

// connectToHold connects with the margin that a command needs. If ZooKeeper's servers grant another session timeout than requested, it
// divides that one and connects again.
func (a *app) connectToHold(ctx context.Context, r *runFlags) (*client, window, error) {
	e, err := a.set.chosenEngine()
	if err != nil {
		return nil, window{}, err
	}
	lease := cmp.Or(a.set.lease, e.about().lease)
	const attempts = 3 // an ensemble whose servers differ might never agree
	for i := range attempts {
		w, err := divide(lease, r.grace, r.graceSet)
		switch {
		case err != nil && i > 0:
			return nil, w, &exitError{exitUsage, fmt.Errorf("%w (the servers give no other)", err)}
		case err != nil:
			return nil, w, err
		}
		c, err := a.connect(ctx, connectOptions{owner: r.owner, holds: &w})
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

// passed reports whether a moment has passed on either clock: the monotonic clock stops while the machine is asleep, and the wall clock
// can be set.
func passed(at time.Time) bool {
	now := time.Now()
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}

// due returns a channel for a moment; nil for the zero moment.
func due(at time.Time) <-chan time.Time {
	if at.IsZero() {
		return nil
	}
	return time.After(time.Until(at))
}
