package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRootCommand(a *app) *cobra.Command {
	cobra.EnableCommandSorting = false // the most important command comes first
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "Distributed locks",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.readEnv(cmd); err != nil {
				return err
			}
			if err := a.set.checkGiven(cmd); err != nil {
				return err
			}
			return a.begin()
		},
	}
	root.PersistentFlags().SortFlags = false
	a.set.addFlags(root.PersistentFlags())
	root.Short += " on " + listed(a.set.engines, "and", func(b about) string { return b.name })
	a.set.completeChoices(root)
	run, _ := newRunCommand(a)
	root.AddCommand(
		run,
		newElectCommand(a),
		newHoldCommand(a),
		newListCommand(a),
		newShowCommand(a),
		newWatchCommand(a),
		newObserveCommand(a),
		newAskCommand(a),
		newBreakCommand(a),
		newDoctorCommand(a),
	)
	for _, e := range a.set.engines {
		root.AddCommand(e.commands(a)...)
	}
	for _, c := range root.Commands() {
		c.SuggestFor = map[string][]string{"run": {"lock"}, "hold": {"lock"}, "show": {"inspect"}, "break": {"unlock"}}[c.Name()]
	}
	root.AddCommand(newVersionCommand(a), newManCommand())
	addHelp(root, a.set.engines)
	root.Version = readVersion().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageFunc(printUsage)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, args []string) error {
			if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
				return usagef("no help on %q", strings.Join(args, " "))
			}
			return nil
		}
	}
	return root
}

// helpTexts has the help of commands by their names. Examples follow the line "Examples:". The file of an engine adds what
// differs there. Its sections begin with the name of a command in brackets.
//
//go:embed help
var helpTexts embed.FS

// addHelp gives a command and its subcommands their help.
func addHelp(cmd *cobra.Command, engines []engine) {
	if text, err := helpTexts.ReadFile("help/" + cmd.Name() + ".txt"); err == nil {
		cmd.Long, cmd.Example, _ = strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n\nExamples:\n")
	}
	for _, e := range engines {
		text, _ := helpTexts.ReadFile("help/engines/" + e.about().choice() + ".txt")
		if _, section, ok := strings.Cut("\n"+string(text), "\n["+cmd.Name()+"]\n"); ok {
			section, _, _ = strings.Cut(section, "\n\n[")
			cmd.Long += "\n\n" + strings.TrimSuffix(section, "\n")
		}
	}
	for _, c := range cmd.Commands() {
		addHelp(c, engines)
	}
}

// commandLineError turns a command line error of cobra into one line.
func commandLineError(err error) error {
	unknown, similar, ok := strings.Cut(err.Error(), ` for "holdfast"`)
	_, number, unitless := strings.Cut(unknown, `time: missing unit in duration "`)
	switch {
	case unknown == "unknown flag: --json":
		err = fmt.Errorf("%w; did you mean -o json?", err)
	case unitless:
		err = fmt.Errorf("%w; did you mean %ss?", err, strings.TrimRight(number, `"`))
	}
	if !ok {
		return &exitError{exitUsage, err}
	}
	_, similar, _ = strings.Cut(similar, "?")
	for i, name := range strings.Fields(similar) {
		unknown += fmt.Sprintf("%s %q", []string{"; did you mean", " or"}[min(i, 1)], name)
	}
	if similar != "" {
		unknown += "?"
	}
	return usagef("%s", unknown)
}
