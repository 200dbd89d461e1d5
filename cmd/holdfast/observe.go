package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// observeFlags are the flags of observe.
type observeFlags struct {
	key    string
	script string
}

func newObserveCommand(a *app) *cobra.Command {
	var o observeFlags
	cmd := &cobra.Command{
		Use:               "observe KEY",
		Short:             "Print a line, or run a command, for each change of holder",
		Args:              exactlyOneKey,
		ValidArgsFunction: a.completeKey,
	}
	cmd.Flags().StringVar(&o.script, "exec", "", "instead of printing, run `STRING` with $SHELL -c (or /bin/sh -c) for each change")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.key = args[0]
		return a.observe(cmd.Context(), o)
	}
	return cmd
}

// observe tells of each change until the program ends.
func (a *app) observe(parent context.Context, o observeFlags) error {
	if o.script != "" {
		if name := shell(o.script)[0]; !runnable(name) {
			return &exitError{exitNotFound, fmt.Errorf("there is no shell %s", plain(name))}
		}
		a.speakAside()
	}
	c, err := a.connect(parent, connectOptions{})
	if err != nil {
		return err
	}
	defer a.disconnect(c)
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if err := a.reachable(ctx, c, o.key); err != nil {
		return err
	}
	if o.script == "" {
		go func() {
			if err := unread(a.out); err != nil {
				cancel(err)
			}
		}()
	}
	defer a.tellOutages(c, "the last state may be outdated")()
	switch err := a.tellChanges(ctx, c, o); {
	case parent.Err() != nil: // an interrupt is the usual way to end it, and needs no message
		return &exitError{code: exitCode(parent, context.Cause(parent))}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return err
	}
}

// runnable reports whether there is such a program.
func runnable(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// reachable asks about a key, and fails if there is no answer within --timeout: a user who
// has the address wrong is to hear of it.
func (a *app) reachable(ctx context.Context, c *client, key string) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	_, err := c.Inspect(ctx, key)
	return err
}

// tellChanges returns what ends the observation.
func (a *app) tellChanges(ctx context.Context, c *client, o observeFlags) error {
	for info, err := range c.Observe(ctx, o.key) {
		switch {
		case err != nil:
			return err
		case o.script != "":
			a.runForChange(ctx, o.script, info)
		default:
			if err := a.printChange(info); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeJSON is a line of observe in JSON.
type changeJSON struct {
	Time time.Time `json:"time"`
	lockJSON
}

func (a *app) printChange(info holdfast.Info) error {
	now := time.Now()
	return a.print(changeJSON{now.UTC(), newLockJSON(info)}, "%s %s", now.Format(stamp), sight{info: info}.line())
}

// execGrace is the time from SIGTERM to SIGKILL for the command of an observe that ends.
const execGrace = 5 * time.Second

// runForChange runs a command that is told of a state.
func (a *app) runForChange(ctx context.Context, script string, info holdfast.Info) {
	command := shell(script)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	tell := map[string]string{"HOLDFAST_KEY": info.Key, "HOLDFAST_HELD": strconv.FormatBool(info.Held)}
	if info.Held {
		tell["HOLDFAST_OWNER"], tell["HOLDFAST_DATA"] = info.Owner, string(info.Data)
		if info.Token != 0 {
			tell["HOLDFAST_TOKEN"] = info.Token.String()
		}
	}
	if info.Stale {
		tell["HOLDFAST_STALE"] = "true"
	}
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = environment(tell), a.out, a.err, execGrace
	defer inGroup(cmd)()
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		a.warn("the command of --exec has failed: %v", err)
	}
}

// tellOutages says on stderr when the engine cannot be reached, with what follows from it, and when it can again, until stop is called.
func (a *app) tellOutages(c *client, so string) (stop func()) {
	events := c.Events()
	ended, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		down := false
		for {
			select {
			case <-events.Disconnected():
				if !down {
					a.warn("disconnected: %s", so)
				}
				down = true
			case <-events.Ready():
				if down {
					a.warn("connected again")
				}
				down = false
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
		events.Close()
	}
}
