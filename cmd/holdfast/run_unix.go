//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

// run takes the lock, runs the command, and releases the lock.
func (a *app) run(ctx context.Context, r *runFlags, args []string) error {
	path, err := job.Find(args[0])
	if err != nil {
		return cannotRun(args[0], err)
	}
	c, w, err := a.connectToHold(ctx, r)
	if err != nil {
		return err
	}
	wait := disconnectTimeout
	defer func() { a.disconnectWithin(c, wait) }()
	lock, err := a.acquire(ctx, c, r)
	if err != nil {
		if errors.Is(err, holdfast.ErrHeld) && ctx.Err() == nil {
			return &exitError{r.conflict, err}
		}
		return err
	}
	h := &hold{app: a, lock: lock, window: w, ttl: r.ttl}
	if c.lease() == w.lease {
		err = h.run(ctx, job.Command{Path: path, Args: args, Env: environment(lock)})
	} else { // by another session, which began while the lock was waited for
		err = errUnsteady
	}
	if e := (*startError)(nil); errors.As(err, &e) {
		err = cannotRun(args[0], job.Explain(e.err))
	}
	if errors.Is(lock.Err(), holdfast.ErrLost) {
		wait = time.Second // there is not much to be told, and perhaps nobody who listens
	}
	return h.release(err)
}

func (a *app) acquire(ctx context.Context, c *client, r *runFlags) (*holdfast.Lock, error) {
	a.log.Info("connected; the lock is asked for", "key", r.key)
	if r.try {
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		return c.TryAcquire(ctx, r.key, r.options()...)
	}
	return c.Acquire(ctx, r.key, r.options()...)
}

// cannotRun is the error of a command that cannot be run, with the status of
// shells.
func cannotRun(name string, err error) error {
	code := exitNotExec
	if errors.Is(err, job.ErrNotFound) {
		code = exitNotFound
	}
	return &exitError{code, fmt.Errorf("%s: %w", plain(name), err)}
}

// environment is what the command gets: what this program has, and what it
// holds. An outer holdfast's variables do not shine through.
func environment(lock *holdfast.Lock) []string {
	held := map[string]string{"HOLDFAST_KEY": lock.Key(), "HOLDFAST_OWNER": lock.Owner(), "HOLDFAST_TOKEN": ""}
	if lock.Token() != 0 {
		held["HOLDFAST_TOKEN"] = lock.Token().String()
	}
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if _, ours := held[name]; !ours {
			env = append(env, e)
		}
	}
	for name, value := range held {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
