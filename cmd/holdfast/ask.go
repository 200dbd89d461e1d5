package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

// askFlags are the flags of ask.
type askFlags struct {
	key        string
	wait       bool
	breakAfter time.Duration
}

func newAskCommand(a *app) *cobra.Command {
	var q askFlags
	cmd := &cobra.Command{
		Use:               "ask KEY",
		Short:             "Ask the holder of a lock to let go",
		Args:              exactlyOneKey,
		ValidArgsFunction: a.completeKey,
	}
	cmd.Flags().BoolVar(&q.wait, "wait", false, "wait until the holder has let go")
	cmd.Flags().DurationVar(&q.breakAfter, "break-after", 0, "wait, and take the lock away if the holder has not let go within this time")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.breakAfter < 0 {
			return usagef("--break-after: %v is negative", q.breakAfter)
		}
		q.key = args[0]
		return a.ask(cmd.Context(), q)
	}
	return cmd
}

func (a *app) ask(ctx context.Context, q askFlags) error {
	c, err := a.connect(ctx, connectOptions{})
	if err != nil {
		return err
	}
	defer a.disconnect(c)
	info, err := a.askHolder(ctx, c, q.key)
	if err != nil {
		return err
	}
	who := fmt.Sprintf("%s, which holds %s%s", plain(info.Owner), plain(info.Key), withToken(info.Token))
	if len(info.Holders) > 1 {
		who = fmt.Sprintf("%s, which hold %s", holders(info), plain(info.Key))
	}
	if !q.wait && q.breakAfter == 0 {
		return a.print(newLockJSON(info), "asked %s", who)
	}
	a.warn("asked %s", who)
	if beat := info.Lease / 4; 0 < q.breakAfter && q.breakAfter < beat {
		a.warn("%s may not hear of it within %v: with a lease of %v there is a heartbeat every %v by default", plain(info.Owner), q.breakAfter, info.Lease, beat)
	}
	letGo := fmt.Sprintf("%s has let go of %s", plain(info.Owner), plain(info.Key))
	if len(info.Holders) > 1 {
		letGo = fmt.Sprintf("%s have let go of %s", holders(info), plain(info.Key))
	}
	over, err := a.letsGo(ctx, c, info, q.breakAfter)
	switch {
	case err != nil:
		return err
	case over:
		return a.print(newLockJSON(info), "%s", letGo)
	}
	bounded, cancel := a.bounded(ctx)
	defer cancel()
	err = breakAll(bounded, c.Break, info)
	if errors.Is(err, holdfast.ErrChanged) { // at the last moment
		return a.print(newLockJSON(info), "%s", letGo)
	}
	if err != nil {
		return err
	}
	return a.print(newLockJSON(info), "broke the lock of %s, which %s has not let go of within %v", plain(info.Key), holders(info), q.breakAfter)
}

// askHolder asks whoever holds a key, all if several do.
func (a *app) askHolder(ctx context.Context, c *client, key string) (holdfast.Info, error) {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	info, err := c.Inspect(ctx, key)
	if err == nil && !info.Held {
		err = no("nobody holds %q", info.Key)
	}
	if err != nil {
		return info, err
	}
	var gone error // of several who share the key, some may be
	asked := 0
	for grant := range info.Each() {
		switch err := c.Ask(ctx, grant); {
		case errors.Is(err, holdfast.ErrChanged):
			gone = err
		case err != nil:
			return info, err
		default:
			asked++
		}
	}
	if asked == 0 {
		return info, gone
	}
	return info, nil
}

// letsGo waits until the grants that info describes are over, or some time has passed; 0 is as long as it takes.
func (a *app) letsGo(ctx context.Context, c *client, info holdfast.Info, within time.Duration) (over bool, err error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if within > 0 {
		waiting, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	for now, err := range c.Observe(waiting, info.Key) {
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case waiting.Err() != nil:
			return false, nil
		case err != nil:
			return false, err
		case !anyLeft(now, info):
			return true, nil
		}
	}
	return false, nil
}

// anyLeft reports whether a grant of info is among those of now.
func anyLeft(now, info holdfast.Info) bool {
	for a := range now.Each() {
		for b := range info.Each() {
			if sameGrant(a, b) {
				return true
			}
		}
	}
	return false
}

// sameGrant reports whether two states are of one grant: on DynamoDB a grant that was broken
// has another name until the holder notices.
func sameGrant(a, b holdfast.Info) bool {
	return a.Grant == b.Grant || a.Token != 0 && a.Token == b.Token && a.Owner == b.Owner
}
