package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `Distributed locks on ZooKeeper and DynamoDB, for the shell.

Settings are flags or environment variables; the flag wins. --servers means ZooKeeper,
--table means DynamoDB. Region, credentials and endpoint of DynamoDB are the AWS SDK's
own: AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL_DYNAMODB and so on.

Exit status:
  0    done
  1    the answer is no: nothing to break, not confirmed, a check has failed
  64   bad usage
  69   the engine cannot be reached, refuses, or any other failure
  75   not acquired: held by another (-E chooses another number)
  78   run, elect, hold: a program that ignores this one's --names uses the key
  79   run, hold: the lock was lost; elect: another process took its --owner name
  124  run, hold: --ttl was reached
  126  run, elect: the command is not executable
  127  run, elect, observe --exec: the command, or the shell, was not found
  128+n  ended by signal n
"run" and "elect" otherwise end with the status of their command.

Ctrl-C ends any command in good order; pressed again, at once. In that case others get
what was held or waited for only when its lease is over.`

func newRootCommand(a *app) *cobra.Command {
	cobra.EnableCommandSorting = false // the most important command comes first
	root := &cobra.Command{
		Use:           "holdfast",
		Short:         "Distributed locks on ZooKeeper and DynamoDB",
		Long:          rootLong,
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
