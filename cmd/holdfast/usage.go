package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Flags are shown in groups: those of the command, those of all commands, and
// those that only one engine has, which begin with its name.
var engineGroups = []string{"ZooKeeper", "DynamoDB"}

// printUsage takes the place of cobra's own template.
func printUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n")
	if !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		t := columns(w)
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(t, "  %s\t%s\n", c.Name(), c.Short)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	local := cmd.LocalNonPersistentFlags()
	local.SortFlags = cmd.Flags().SortFlags
	printFlags(w, "Flags", local)
	common := newFlagGroup()
	engines := make(map[string]*pflag.FlagSet)
	for _, name := range engineGroups {
		engines[name] = newFlagGroup()
	}
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		name, rest, ok := strings.Cut(f.Usage, ": ")
		if group := engines[name]; ok && group != nil {
			shown := *f
			shown.Usage = rest
			group.AddFlag(&shown)
			return
		}
		common.AddFlag(f)
	})
	printFlags(w, "Flags of all commands", common)
	for _, name := range engineGroups {
		printFlags(w, "Flags for "+name, engines[name])
	}
	return nil
}

// newFlagGroup keeps flags in the order in which they are added.
func newFlagGroup() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

func printFlags(w io.Writer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s:\n%s", title, flags.FlagUsagesWrapped(width()))
	}
}

// width is that of the terminal, within what reads well.
func width() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 80
	}
	return min(max(columns, 60), 100)
}
