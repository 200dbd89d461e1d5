package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// keyCommand returns a command that takes a key, and runs with a connection to the engine.
func (a *app) keyCommand(name, short string, o *connectOptions, run func(ctx context.Context, c *client, key string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " KEY",
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "" {
				return usagef("KEY is empty") // the engine checks other keys itself
			}
			return takes(1, 1)(cmd, args)
		},
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), *o)
			if err != nil {
				return err
			}
			defer a.disconnect(c)
			return run(cmd.Context(), c, args[0])
		},
	}
}

// takes checks the number of arguments.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// inspect reads a key within --timeout.
func (a *app) inspect(ctx context.Context, c *client, key string) (holdfast.Info, error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return c.Inspect(ctx, key)
}

// inspectHeld reads a key, and fails if no client holds it.
func (a *app) inspectHeld(ctx context.Context, c *client, key string) (holdfast.Info, error) {
	info, err := a.inspect(ctx, c, key)
	if err == nil && !info.Held {
		err = no("no client holds %q", info.Key)
	}
	return info, err
}

// eachGrant asks for or breaks the grants that info describes, within --timeout. It is no error that some of several have ended.
func (a *app) eachGrant(ctx context.Context, info holdfast.Info, do func(context.Context, holdfast.Info) error) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	var ended error
	done := 0
	for grant := range info.Each() {
		switch err := do(ctx, grant); {
		case errors.Is(err, holdfast.ErrChanged):
			ended = err
		case err != nil:
			return err
		default:
			done++
		}
	}
	if done > 0 {
		return nil
	}
	return ended
}
