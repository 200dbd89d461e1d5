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
	wait := disconnectTimeout
	defer func() { a.disconnectWithin(c, wait) }()
	lock, err := a.acquire(ctx, c, &r.acquireFlags)
	if err != nil {
		return err
	}
	h := &supervisor{app: a, lock: lock, window: w, ttl: r.ttl}
	if c.lease() == w.lease {
		err = h.run(ctx, job.Command{Path: path, Args: r.command, Env: environment(lock)})
	} else { // by another session, which began while the lock was waited for
		err = errUnsteady
	}
	if e := (*startError)(nil); errors.As(err, &e) {
		err = cannotRun(name, job.Explain(e.err))
	}
	if errors.Is(lock.Err(), holdfast.ErrLost) {
		wait = time.Second // there is not much to be told, and perhaps nobody who listens
	}
	return h.release(err)
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
