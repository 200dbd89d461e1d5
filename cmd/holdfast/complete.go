package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// What a user who has pressed Tab is made to wait for, and to read.
const (
	completeTimeout = 2 * time.Second
	completeMost    = 500
)

// completeKey offers the keys that are held or waited for. Whatever goes wrong,
// it offers nothing: a shell is no place for errors.
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
		if err != nil || len(found) == completeMost {
			break
		}
		if quoted := strconv.Quote(info.Key); quoted[1:len(quoted)-1] == info.Key {
			found = append(found, info.Key)
		}
	}
	return found, nothing
}
