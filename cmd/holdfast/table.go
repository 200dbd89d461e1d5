package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// tableJSON is what "table create" tells.
type tableJSON struct {
	Table string `json:"table"`
	Ready bool   `json:"ready"`
}

func newTableCommand(a *app) *cobra.Command {
	table := &cobra.Command{
		Use:   "table",
		Short: "Set up a table for locks on DynamoDB",
		RunE: func(_ *cobra.Command, args []string) error {
			return usagef("table has one command, create, and not %q", args)
		},
	}
	table.AddCommand(&cobra.Command{
		Use:   "create",
		Short: "Create the table, or check that it is fit for use",
		Long: `See to it that there is a DynamoDB table of the name --table with the keys
--partition-key and --sort-key: create it, with on-demand billing, or check the one
that is there. With --ttl-attribute, Time to Live is switched on. Wait until the
table can be used, for --timeout at most.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.set.engine != "" && a.set.engine != engineDynamoDB {
				return usagef("tables are DynamoDB's, and --engine is %s", a.set.engine)
			}
			options, err := a.set.dynamoSettings.options()
			if err != nil {
				return err
			}
			options.Lease = a.set.lease
			ctx, cancel := a.bounded(cmd.Context())
			defer cancel()
			ddb, err := a.dynamoDB(ctx)
			if err != nil {
				return err
			}
			if err := dynamolock.CreateTable(ctx, ddb, options); err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(tableJSON{Table: options.Table, Ready: true})
			}
			_, err = fmt.Fprintf(a.out, "table %s is ready\n", options.Table)
			return err
		},
	})
	return table
}
