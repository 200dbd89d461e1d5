package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// printUsage replaces cobra's template.
func printUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n")
	if !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	} else {
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
	for _, g := range flagGroups(cmd) {
		fmt.Fprintf(w, "\n%s:\n%s", g.title, g.FlagUsagesWrapped(width()))
	}
	return nil
}

// A flagGroup is a titled set of flags.
type flagGroup struct {
	title string
	*pflag.FlagSet
}

// flagGroups returns a command's own flags, the flags of all commands, and a group for each engine. The usage of an engine's flag begins
// with the engine's name.
func flagGroups(cmd *cobra.Command) []flagGroup {
	groups := []flagGroup{
		{"Flags", newFlagSet()},
		{"Flags of all commands", newFlagSet()},
	}
	local := cmd.LocalNonPersistentFlags()
	local.SortFlags = cmd.Flags().SortFlags
	local.VisitAll(groups[0].AddFlag)
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		only := f.Annotations[engineAnnotation]
		if len(only) == 0 {
			groups[1].AddFlag(f)
			return
		}
		title, shown := "Flags for "+only[0], *f
		shown.Usage = strings.TrimPrefix(f.Usage, only[0]+": ")
		if last := groups[len(groups)-1]; last.title != title {
			groups = append(groups, flagGroup{title, newFlagSet()})
		}
		groups[len(groups)-1].AddFlag(&shown)
	})
	return slices.DeleteFunc(groups, func(g flagGroup) bool { return !g.HasAvailableFlags() })
}

// newFlagSet returns a set that keeps the order of its flags.
func newFlagSet() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

// width is the terminal's width, within readable limits.
func width() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 80
	}
	return min(max(columns, 60), 100)
}
