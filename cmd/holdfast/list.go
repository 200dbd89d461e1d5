package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func newListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls [PREFIX]",
		Aliases: []string{"list"},
		Short:   "List the keys that are held or waited for",
		Long: `List the keys that are held or waited for; with PREFIX, those that begin with it. The
list is not a snapshot of one moment. In JSON, each key is a line. What cannot be read
is reported at the end, with exit status 69.`,
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
			t := a.table()
			header := "KEY\tOWNER\tTOKEN\tSINCE\tQUEUED\tWAITING\n"
			var failed error
			for info, err := range c.List(ctx, strings.Join(args, "")) {
				if err != nil { // of the list, or of items that cannot be read; it comes last
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
					owner = cut(plain(info.Owner), 2*holdfast.MaxOwner)
				}
				fmt.Fprintf(t, "%s%s\t%s\t%d\t%s\t%s\t%d\n",
					header, plain(info.Key), owner, info.Token, moment(info.Since), moment(info.QueuedAt), len(info.Queue))
				header = ""
			}
			return errors.Join(t.Flush(), failed) // what was found is told in any case
		},
	}
}
