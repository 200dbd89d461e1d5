package main

import (
	"cmp"
	"os"
	"time"

	"github.com/spf13/cobra"
)

const runLong = `Take the lock of KEY, run COMMAND while it is held, release it, and end with the
status of COMMAND. Without --wait or --try, wait for the lock for as long as it
takes, and say on standard error whom for and at which place in the queue (ZooKeeper
has one); -q keeps it quiet.

The first argument is KEY. Flags may stand before and after it; the first argument
after KEY that is no flag begins COMMAND, and so does what follows "--". With -k KEY,
all arguments are COMMAND. With -c STRING there is no COMMAND: a shell runs STRING.

COMMAND has standard input, output and error of holdfast itself, and in its
environment

  HOLDFAST_KEY    the key
  HOLDFAST_TOKEN  the fencing token: a number that grows with each grant of the
                  key (not set with --mode fail-closed, which has none). Pass it
                  to what the lock protects, and have that refuse smaller ones.
  HOLDFAST_OWNER  the owner name of this hold, as "holdfast show KEY" shows it

It runs in a process group of its own. If holdfast has the terminal in the
foreground, COMMAND gets it, and Ctrl-C and Ctrl-Z with it. INT, TERM, HUP, QUIT,
USR1, USR2, ALRM, WINCH, TSTP and CONT sent to holdfast are passed on to the
group. When COMMAND ends, what it has left running in its group gets SIGTERM, and
SIGKILL after --grace; only then is the lock released. What has left the group
(setsid, a daemon) is neither seen nor ended.

When the lock is lost, because the engine could not be reached for too long, the
group gets SIGTERM at once and SIGKILL after --grace: which is before the engine
can give the lock to anybody else. When somebody else may have it already, because
it was broken ("holdfast break"), reclaimed, or the machine was suspended, the group
gets SIGKILL at once. The longer the grace, the shorter the outage that a hold
outlives; it must be less than half the lease (less a bit for clocks that run at
different rates).

On Linux this does not depend on holdfast getting to run: a second process of it,
"holdfast guard of KEY" in ps -f, kills the group as soon as holdfast is gone, by
SIGKILL for example, and in time before the lease is over if it was stopped meanwhile
(Ctrl-Z, SIGSTOP), when nobody renews the lock. When that process is killed or stopped
itself, another takes its place, and where none can, COMMAND is ended (status 69).
Nobody is left when both are killed or stopped at once: docs/cli.md.

None of this makes up for the fencing token where COMMAND writes to something that
outlives it.

Ctrl-C while waiting for the lock gives up the place in the queue; a second one
ends holdfast at once, and the engine notices when the lease is over. While
COMMAND runs, signals are its business, however many. When it has ended, one
signal kills what it has left running, or ends the wait for the engine's
confirmation of the release, and another ends holdfast at once: if the lock is not
released by then, it goes to others when its lease is over.`

const runExample = `  holdfast run reports/nightly -- ./make-reports.sh
  holdfast run deploy --try -E 0 -- ./deploy.sh         # somebody deploys: fine
  holdfast run import --wait 30s --ttl 1h -- ./import.sh
  holdfast run cleanup -c 'rm -f /srv/tmp/*; date >/srv/cleaned'`

// runFlags are those of run.
type runFlags struct {
	acquireFlags
	script   string
	command  []string
	grace    time.Duration
	graceSet bool // given; otherwise it follows from the lease
}

func newRunCommand(a *app) (*cobra.Command, *runFlags) {
	var r runFlags
	cmd := &cobra.Command{
		Use:     "run KEY [flags] [--] COMMAND [ARG...]",
		Short:   "Run a command while a lock is held",
		Long:    runLong,
		Example: runExample,
		Args:    r.parse,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 && r.key == "" {
				return a.completeKey(cmd, args, prefix)
			}
			return nil, cobra.ShellCompDirectiveDefault // commands and files are the shell's
		},
	}
	r.addFlags(cmd, "end COMMAND, by SIGTERM and after --grace SIGKILL, when it has run this long (default: never)")
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows COMMAND is its own, with or without "--"
	f.StringVarP(&r.script, "command", "c", "", "run this `STRING` by $SHELL -c, or /bin/sh -c, in place of COMMAND")
	f.StringVarP(&r.key, "key", "k", "", "the `KEY`, if it is not the first argument")
	f.DurationVar(&r.grace, "grace", 0, "time from SIGTERM to SIGKILL when the lock is lost, the TTL is reached, or COMMAND leaves others behind (default: a fifth of the lease)")
	fromEnv(f.Lookup("grace"))
	_ = cmd.RegisterFlagCompletionFunc("key", a.completeKey)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if help, _ := f.GetBool("help"); help { // after KEY, where cobra does not look for it
			return cmd.Help()
		}
		r.graceSet = f.Changed("grace")
		if err := r.check(cmd); err != nil {
			return err
		}
		return a.run(cmd.Context(), &r)
	}
	return cmd, &r
}

// parse tells KEY, the flags behind it, and COMMAND apart.
func (r *runFlags) parse(cmd *cobra.Command, args []string) error {
	f := cmd.Flags()
	r.command = args
	if f.Changed("key") || len(args) == 0 || f.ArgsLenAtDash() == 0 {
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

// check refuses what makes no sense before anything is sent.
func (r *runFlags) check(cmd *cobra.Command) error {
	switch {
	case r.key == "":
		return usagef("which key? It comes first: holdfast run KEY -- COMMAND")
	case cmd.Flags().Changed("command") && len(r.command) > 0:
		return usagef("-c and COMMAND exclude each other: %q", r.command)
	case cmd.Flags().Changed("command"):
		r.command = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", r.script}
	case len(r.command) == 0:
		return usagef("which command? It comes after the key: holdfast run KEY -- COMMAND")
	case r.grace < 0:
		return usagef("--grace: %v is negative", r.grace)
	}
	return r.acquireFlags.check(cmd)
}
