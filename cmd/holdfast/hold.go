package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func newHoldCommand(a *app) *cobra.Command {
	var q acquireFlags
	var o connectOptions
	cmd := a.keyCommand("hold", "Hold a lock until standard input ends", &o, func(ctx context.Context, c *client, key string) error {
		q.key = key
		return a.hold(ctx, c, &q)
	})
	q.addFlags(cmd, "release the lock when it has been held this long (default: never)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		o.owner = q.owner
		return q.check(cmd)
	}
	return cmd
}

// hold holds the lock until the input or the program ends.
func (a *app) hold(ctx context.Context, c *client, q *acquireFlags) error {
	lock, err := a.acquire(ctx, c, q, holdfast.WithTTL(q.ttl))
	if err != nil {
		return err
	}
	defer a.tellOutage(c, q)()
	if err := a.printHold(lock); err != nil {
		return errors.Join(err, a.releaseHold(ctx, lock))
	}
	select {
	case <-lock.Done():
	case <-ctx.Done():
	case <-inputEnds(a.in):
	}
	return a.releaseHold(ctx, lock)
}

func (a *app) printHold(lock *holdfast.Lock) error {
	token := "-"
	if lock.Token() != 0 {
		token = lock.Token().String()
	}
	return a.print(lockJSON{Key: lock.Key(), Held: true, holderJSON: holderJSON{Owner: lock.Owner(), Token: lock.Token()}}, "%s", token)
}

// releaseHold releases the lock if it is still held. --timeout or a signal ends the wait for confirmation.
func (a *app) releaseHold(ctx context.Context, lock *holdfast.Lock) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx) // a second signal ends the program anyway
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	err := lock.Release(ctx)
	if errors.As(context.Cause(ctx), new(interrupted)) {
		a.hasty = true
	}
	switch {
	case errors.Is(lock.Err(), holdfast.ErrLost):
		return &exitError{exitLost, a.because(lock.Err())}
	case errors.Is(err, holdfast.ErrLost): // the release has noticed it
		return &exitError{exitLost, err}
	case errors.Is(lock.Err(), holdfast.ErrTTLExpired):
		return &exitError{exitTTL, fmt.Errorf("%q: --ttl was reached", lock.Key())}
	case err != nil:
		a.warn("%v: others get the lock when its lease is over", err)
	}
	return nil
}

// inputEnds returns a channel that closes at the end of an input; nil for /dev/null.
func inputEnds(in io.Reader) <-chan struct{} {
	if f, ok := in.(*os.File); ok {
		null, err := os.Stat(os.DevNull)
		if info, e := f.Stat(); err == nil && e == nil && os.SameFile(info, null) {
			return nil
		}
	}
	readInBackground()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for buffer := make([]byte, 4096); ; {
			_, err := in.Read(buffer)
			if errors.Is(err, syscall.EIO) { // a terminal in use by another job
				time.Sleep(time.Second)
			} else if err != nil {
				return
			}
		}
	}()
	return ended
}
