//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

// run runs the command while it holds the lock.
func (a *app) run(ctx context.Context, r *runFlags) error {
	name := r.command[0]
	path, err := job.Find(name)
	if err != nil {
		return cannotRun(name, err)
	}
	c, w, err := a.connectToHold(ctx, r)
	if err != nil {
		return err
	}
	defer a.disconnect(c)
	h := &supervisor{app: a, key: r.key, window: w, ttl: r.ttl}
	var env []string
	if len(r.all) > 0 {
		locks, err := a.acquireAll(ctx, c, r)
		if err != nil {
			return err
		}
		h.lock, h.each, h.key, env = locks, locks.All(), strings.Join(r.all, ","), allEnvironment(locks, r.all)
		h.asked = asked(h.each...)
	} else {
		lock, err := a.acquire(ctx, c, &r.acquireFlags)
		if err != nil {
			return err
		}
		h.lock, h.asked, env = lock, asked(lock), grantEnvironment(lock)
	}
	defer a.tellOutage(c, &r.acquireFlags)()
	if c.lease() == w.lease {
		err = h.run(ctx, job.Command{Path: path, Args: r.command, Env: env})
	} else { // the session was replaced during the wait for the lock
		err = errUnsteady
	}
	if e := (*startError)(nil); errors.As(err, &e) {
		err = cannotRun(name, job.Explain(e.err))
	}
	a.hasty = errors.Is(h.lock.Err(), holdfast.ErrLost) // there is little to say, and perhaps no engine
	return h.release(err)
}

// cannotRun is the error for a command that cannot be run, with the shells' exit status.
func cannotRun(name string, err error) error {
	code := exitNotExec
	if errors.Is(err, job.ErrNotFound) {
		code = exitNotFound
	}
	return &exitError{code, fmt.Errorf("%s: %w", plain(name), err)}
}

// grantEnvironment describes the grant to the command of run.
func grantEnvironment(lock *holdfast.Lock) []string {
	tell := map[string]string{"HOLDFAST_KEY": lock.Key(), "HOLDFAST_OWNER": lock.Owner()}
	if lock.Token() != 0 {
		tell["HOLDFAST_TOKEN"] = lock.Token().String()
	}
	return environment(tell)
}

// allEnvironment describes the grants to the command of run --all, in the order of the flag.
func allEnvironment(locks *holdfast.Locks, keys []string) []string {
	tell := make(map[string]string)
	for i, key := range keys {
		lock := locks.Lock(key)
		n := fmt.Sprintf("_%d", i+1)
		tell["HOLDFAST_KEY"+n], tell["HOLDFAST_OWNER"] = key, lock.Owner()
		if lock.Token() != 0 {
			tell["HOLDFAST_TOKEN"+n] = lock.Token().String()
		}
	}
	return environment(tell)
}
