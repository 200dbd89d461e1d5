package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func newAskCommand(a *app) *cobra.Command {
	var wait bool
	var breakAfter time.Duration
	cmd := a.keyCommand("ask", "Ask the holder of a lock to let go", &connectOptions{},
		func(ctx context.Context, c *client, key string) error { return a.ask(ctx, c, key, wait, breakAfter) })
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the holder has let go")
	cmd.Flags().DurationVar(&breakAfter, "break-after", 0, "wait, and take the lock away if the holder has not let go within this time")
	return cmd
}

func (a *app) ask(ctx context.Context, c *client, key string, wait bool, breakAfter time.Duration) error {
	info, err := a.inspectHeld(ctx, c, key)
	if err == nil {
		err = a.eachGrant(ctx, info, c.Ask)
	}
	if err != nil {
		return err
	}
	name, holds, has, token := plain(info.Owner), "holds", "has", withToken(info.Token)
	if len(info.Holders) > 1 {
		name, holds, has, token = holders(info), "hold", "have", ""
	}
	if !wait && breakAfter == 0 {
		return a.print(newLockJSON(info), "asked %s, which %s %s%s", name, holds, plain(info.Key), token)
	}
	a.warn("asked %s, which %s %s%s", name, holds, plain(info.Key), token)
	if beat := info.Lease / 4; 0 < breakAfter && breakAfter < beat {
		a.warn("%s may not learn of it within %v: with a lease of %v there is a heartbeat every %v by default",
			plain(info.Owner), breakAfter, info.Lease, beat)
	}
	over, err := letsGo(ctx, c, info, breakAfter)
	if err != nil {
		return err
	}
	if !over {
		err = a.eachGrant(ctx, info, c.Break)
	}
	switch {
	case over, errors.Is(err, holdfast.ErrChanged): // the latter at the last moment
		return a.print(newLockJSON(info), "%s %s let go of %s", name, has, plain(info.Key))
	case err != nil:
		return err
	}
	return a.print(newLockJSON(info), "broke the lock of %s, which %s %s not let go of within %v", plain(info.Key), name, has, breakAfter)
}

// letsGo waits until the grants that info describes are over. It waits for this time at most; 0 is no limit.
func letsGo(ctx context.Context, c *client, info holdfast.Info, within time.Duration) (over bool, err error) {
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

// anyLeft reports whether a grant of info is among those of now. On DynamoDB a grant that was broken has another name until the holder
// notices.
func anyLeft(now, info holdfast.Info) bool {
	for a := range now.Each() {
		for b := range info.Each() {
			if a.Grant == b.Grant || a.Token != 0 && a.Token == b.Token && a.Owner == b.Owner {
				return true
			}
		}
	}
	return false
}
