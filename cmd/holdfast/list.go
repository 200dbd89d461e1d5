package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func newListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "ls [PREFIX]",
		Aliases:           []string{"list"},
		Short:             "List the keys that are held",
		Args:              takes(0, 1),
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), connectOptions{})
			if err != nil {
				return err
			}
			defer a.disconnect(c)
			ctx, cancel := a.bounded(cmd.Context())
			defer cancel()
			t := columns(a.out)
			header := "KEY\tOWNER\tTOKEN\tSINCE\tHEARD\tWAITING\n"
			var failed error
			for info, err := range c.List(ctx, strings.Join(args, "")) {
				if err != nil { // about the list, or items that cannot be read; it comes last
					failed = err
					break
				}
				if a.json() {
					if err := a.printJSON(newLockJSON(info)); err != nil {
						return err
					}
					continue
				}
				owner := "-"
				if info.Held {
					owner = holders(info)
				}
				fmt.Fprintf(t, "%s%s\t%s\t%d\t%s\t%s\t%d\n", header, plain(info.Key), owner, info.Token, since(info), heard(info, moment), len(info.Queue))
				header = ""
			}
			return errors.Join(t.Flush(), failed) // the keys found so far are printed in any case
		},
	}
}

// since says when the lock was granted, or else when the holder joined the queue.
func since(info holdfast.Info) string {
	if info.Since.IsZero() && !info.QueuedAt.IsZero() {
		return "queued " + moment(info.QueuedAt)
	}
	return moment(info.Since)
}

// Limits for a user who has pressed Tab.
const (
	completeTimeout = 2 * time.Second
	completeMax     = 500
)

// completeKey offers the keys that are held. After an error, which a shell cannot show, it offers nothing.
func (a *app) completeKey(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 || a.readEnv(cmd) != nil || a.begin() != nil {
		return nil, nothing
	}
	a.set.timeout = min(a.set.timeout, completeTimeout)
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	c, err := a.connect(ctx, connectOptions{})
	if err != nil {
		return nil, nothing
	}
	defer a.disconnect(c)
	var found []cobra.Completion
	for info, err := range c.List(ctx, prefix) {
		if err != nil || len(found) == completeMax {
			break
		}
		if quoted := strconv.Quote(info.Key); quoted[1:len(quoted)-1] == info.Key {
			found = append(found, info.Key)
		}
	}
	return found, nothing
}
