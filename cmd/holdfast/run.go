package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
)

const runLong = `Take the lock of KEY, run COMMAND while holding it, release it, and exit with the
status of COMMAND. Without --wait or --try, run waits as long as it takes. While it
waits, it says on standard error who holds the lock and at which place in the queue it
is (ZooKeeper has a queue); -q keeps it quiet.

The first argument is KEY. Flags may come before it and after it. The first argument
after KEY that is not a flag begins COMMAND, and so does whatever follows "--". With
-k KEY, all arguments are COMMAND. With -c STRING there is no COMMAND: a shell runs
STRING.

COMMAND inherits standard input, output and error. Its environment has

  HOLDFAST_KEY    the key
  HOLDFAST_TOKEN  the fencing token: a number that grows with each grant of the
                  key (not set with --mode fail-closed, which has none). Pass it
                  to what the lock protects, and have that refuse smaller ones.
  HOLDFAST_OWNER  the owner name of this hold, as "holdfast show KEY" shows it

COMMAND runs in a process group of its own. If holdfast has the terminal in the
foreground, COMMAND gets it, and with it Ctrl-C and Ctrl-Z. holdfast passes INT, TERM,
HUP, QUIT, USR1, USR2, ALRM, WINCH, TSTP and CONT on to the group. When COMMAND ends,
what it has left running in its group gets SIGTERM, and SIGKILL after --grace; only
then is the lock released. Processes that have left the group (setsid, a daemon, what
timeout(1) starts within a script without --foreground) are neither seen nor ended.

With --all, run takes the locks of several keys, one after the other in the order of
their bytes, and COMMAND runs while it has all of them. If one is lost, COMMAND is ended.
Instead of HOLDFAST_KEY and HOLDFAST_TOKEN there are HOLDFAST_KEY_1, HOLDFAST_TOKEN_1,
HOLDFAST_KEY_2 and so on, in the order in which the keys were given.

With --shared, the lock is shared with others that say so, and excludes those who do
not. With --limit N, N hold the lock at a time. A command with another number, or none,
waits in its turn, and later ones wait behind it.

When the lock is lost because the engine could not be reached for too long, the group
gets SIGTERM at once and SIGKILL after --grace, before the engine can give the lock to
anybody else. When somebody else may have it already, because it was broken ("holdfast
break") or reclaimed, or the machine was suspended, the group gets SIGKILL at once.
The longer the grace, the shorter the outage that a hold survives. The grace must be
less than half the lease, less a little for clocks that run at different rates.

On Linux this does not depend on holdfast itself: a second process, "holdfast guard of
KEY" in ps -f, kills the group as soon as holdfast is gone, for example by SIGKILL, and
before the lease is over if holdfast is stopped (Ctrl-Z, SIGSTOP), when nobody renews
the lock. If the guard is killed or stopped, another one takes its place; if that
fails, COMMAND is ended (status 69). Nobody is left if both are killed or stopped at
once: see docs/cli.md.

None of this replaces the fencing token where COMMAND writes to something that
outlives it.

Ctrl-C while run is waiting gives up the place in the queue; a second Ctrl-C ends
holdfast at once, and the engine notices when the lease is over. While COMMAND runs,
signals are its business. When it has ended, a signal kills what it has left running,
or ends the wait for the engine to confirm the release; another signal ends holdfast
at once. If the lock is not released by then, others get it when its lease is over.`

const runExample = `  holdfast run reports/nightly -- ./make-reports.sh
  holdfast run deploy --try -E 0 -- ./deploy.sh         # somebody else deploys: fine
  holdfast run import --wait 30s --ttl 1h -- ./import.sh
  holdfast run uploads --limit 5 -- ./upload.sh         # five at a time, on all machines
  holdfast run --all accounts/7,accounts/9 -- ./transfer.sh
  holdfast run accounts/7 -c 'psql -v fence="$HOLDFAST_TOKEN" -f transfer.sql'`

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
	cmd.Long, cmd.Example = runLong, runExample
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

// addCommandFlags adds the flags that say what to run, and how to end it.
func (r *runFlags) addCommandFlags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after COMMAND are its own, with or without "--"
	f.StringVarP(&r.script, "command", "c", "", "instead of COMMAND, run `STRING` with $SHELL -c (or /bin/sh -c)")
	f.StringVarP(&r.key, "key", "k", "", "the `KEY`, if it does not come first")
	f.DurationVar(&r.grace, "grace", 0, "time from SIGTERM to SIGKILL when the lock is lost, the TTL is reached, or COMMAND leaves processes behind (default: a fifth of the lease)")
	fromEnv(f.Lookup("grace"))
	_ = cmd.RegisterFlagCompletionFunc("key", a.completeKey)
}

// runs says what the command does once its flags are valid.
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
	case all: // in the place of a key
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
	case r.grace < 0:
		return usagef("--grace: %v is negative", r.grace)
	}
	return r.acquireFlags.check(cmd)
}
