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

func newObserveCommand(a *app) *cobra.Command {
	var script string
	cmd := a.keyCommand("observe", "Print a line, or run a command, for each change of holder", &connectOptions{},
		func(ctx context.Context, c *client, key string) error { return a.observe(ctx, c, key, script) })
	cmd.Flags().StringVar(&script, "exec", "", "instead of printing, run `STRING` with $SHELL -c (or /bin/sh -c) for each change")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if script == "" {
			return nil
		}
		a.speakAside()
		name := shell(script)[0]
		if _, err := exec.LookPath(name); err != nil {
			return &exitError{exitNotFound, fmt.Errorf("there is no shell %s", plain(name))}
		}
		return nil
	}
	return cmd
}

// observe reports each change until the program ends.
func (a *app) observe(parent context.Context, c *client, key, script string) error {
	if _, err := a.inspect(parent, c, key); err != nil { // the address may be wrong, and Observe would wait
		return err
	}
	ctx, cancel := a.whileRead(parent, script == "")
	defer cancel()
	defer a.tellOutages(c, "the last state may be outdated")()
	return a.ending(parent, ctx, a.tellChanges(ctx, c, key, script))
}

// whileRead returns a ctx that also ends when no program reads the output any more, if the command prints.
func (a *app) whileRead(parent context.Context, prints bool) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(parent)
	if prints {
		go func() {
			if err := unread(a.out); err != nil {
				end(err)
			}
		}()
	}
	return ctx, func() { end(nil) }
}

// ending is the error of a command that goes on until ctx ends. An interrupt is the usual way to end it, and needs no message.
func (a *app) ending(parent, ctx context.Context, err error) error {
	switch {
	case parent.Err() != nil:
		return &exitError{code: exitCode(parent, context.Cause(parent))}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// tellChanges reports each change until the observation ends, and returns its error.
func (a *app) tellChanges(ctx context.Context, c *client, key, script string) error {
	for info, err := range c.Observe(ctx, key) {
		switch {
		case err != nil:
			return err
		case script != "":
			a.runForChange(ctx, script, info)
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

// runForChange runs a command for a state.
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

// tellOutages reports outages of the engine on stderr, with their consequence, and their ends, until stop is called.
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
