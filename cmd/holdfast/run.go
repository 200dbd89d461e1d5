package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// runFlags are the flags of run.
type runFlags struct {
	acquireFlags
	script   string
	command  []string
	all      []string // keys, instead of one
	grace    time.Duration
	graceSet bool // given; otherwise it follows from the lease
}

func newRunCommand(a *app) (*cobra.Command, *runFlags) {
	var r runFlags
	cmd := r.newCommand(a, "run")
	cmd.Short = "Run a command while a lock is held"
	r.addFlags(cmd, "end COMMAND when it has run this long: SIGTERM, and SIGKILL after --grace (default: never)")
	r.addCommandFlags(a, cmd)
	cmd.Flags().StringSliceVar(&r.all, "all", nil, "instead of KEY, take the locks of all these `KEYS`: KEY,KEY,...")
	r.runs(a, cmd, func() error { return a.run(cmd.Context(), &r) })
	return cmd, &r
}

// newCommand returns a command that runs another one.
func (r *runFlags) newCommand(a *app, name string) *cobra.Command {
	return &cobra.Command{
		Use:  name + " KEY [flags] [--] COMMAND [ARG...]",
		Args: r.parse,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 && r.key == "" {
				return a.completeKey(cmd, args, prefix)
			}
			return nil, cobra.ShellCompDirectiveDefault // the shell completes commands and files
		},
	}
}

// addCommandFlags adds the flags about the command and its end.
func (r *runFlags) addCommandFlags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after COMMAND are its own, with or without "--"
	f.StringVarP(&r.script, "command", "c", "", "instead of COMMAND, run `STRING` with $SHELL -c (or /bin/sh -c)")
	f.StringVarP(&r.key, "key", "k", "", "the `KEY`, if it does not come first")
	f.DurationVar(&r.grace, "grace", 0, "time from SIGTERM to SIGKILL when the lock is lost, the TTL is reached, or COMMAND leaves processes behind (default: a fifth of the lease)")
	fromEnv(f.Lookup("grace"))
	_ = cmd.RegisterFlagCompletionFunc("key", a.completeKey)
}

// runs sets the function that is called once the flags are valid.
func (r *runFlags) runs(a *app, cmd *cobra.Command, run func() error) {
	f := cmd.Flags()
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if help, _ := f.GetBool("help"); help { // after KEY, where cobra does not see it
			return cmd.Help()
		}
		r.graceSet = f.Changed("grace")
		if err := r.check(cmd); err != nil {
			return err
		}
		a.speakAside()
		return run()
	}
}

// parse separates KEY, the flags behind it, and COMMAND.
func (r *runFlags) parse(cmd *cobra.Command, args []string) error {
	f := cmd.Flags()
	r.command = args
	if f.Changed("key") || f.Changed("all") || len(args) == 0 || f.ArgsLenAtDash() == 0 {
		return nil
	}
	key := args[0]
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if f.Changed("key") {
		return usagef("which key? %q, or %q by -k", key, r.key)
	}
	r.key, r.command = key, f.Args()
	return nil
}

// check refuses invalid flags before anything is sent.
func (r *runFlags) check(cmd *cobra.Command) error {
	all := cmd.Flags().Changed("all")
	switch {
	case all && r.key != "":
		return usagef("--all and KEY exclude each other: %q", r.key)
	case all && (len(r.all) == 0 || slices.Contains(r.all, "")):
		return usagef("--all: a key is empty")
	case all && len(slices.Compact(slices.Sorted(slices.Values(r.all)))) < len(r.all):
		return usagef("--all: a key is there twice: %q", r.all)
	case all: // instead of a key
	case r.key == "" && cmd.Flags().Changed("command"):
		return usagef("which key? It comes first: holdfast %s KEY -c STRING", cmd.Name())
	case r.key == "":
		return usagef("which key? It comes first: holdfast %s KEY -- COMMAND", cmd.Name())
	}
	switch {
	case cmd.Flags().Changed("command") && len(r.command) > 0:
		return usagef("-c and COMMAND exclude each other: %q", r.command)
	case cmd.Flags().Changed("command"):
		r.command = shell(r.script)
	case len(r.command) == 0:
		return usagef("which command? It comes after the key: holdfast %s KEY -- COMMAND", cmd.Name())
	}
	return r.acquireFlags.check(cmd)
}
