package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

const runLong = `Take the lock of KEY, run COMMAND while it is held, release it, and end with the
status of COMMAND. Without --wait or --try, wait for the lock for as long as it
takes.

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

const runExample = `  holdfast run -k reports/nightly -- ./make-reports.sh
  holdfast run -k deploy --try -E 0 -- ./deploy.sh       # somebody deploys: fine
  holdfast run -k import --wait 30s --ttl 1h -- ./import.sh`

// runFlags are what only run has.
type runFlags struct {
	key      string
	owner    string
	data     string
	wait     time.Duration
	try      bool
	reclaim  bool
	conflict int
	ttl      time.Duration
	grace    time.Duration
	graceSet bool // given; otherwise it follows from the lease
}

func newRunCommand(a *app) *cobra.Command {
	var r runFlags
	cmd := &cobra.Command{
		Use:     "run -k KEY [flags] [--] COMMAND [ARG...]",
		Short:   "Run a command while a lock is held",
		Long:    runLong,
		Example: runExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.graceSet = cmd.Flags().Changed("grace")
			if err := r.check(cmd, args); err != nil {
				return err
			}
			return a.run(cmd.Context(), &r, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault // commands and files are the shell's
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false) // what follows COMMAND is its own, with or without "--"
	f.StringVarP(&r.key, "key", "k", "", "the `KEY` to lock")
	f.DurationVarP(&r.wait, "wait", "w", 0, "give up when the lock was not to be had for this long (default: never)")
	f.BoolVarP(&r.try, "try", "n", false, "give up at once if somebody has the lock")
	f.IntVarP(&r.conflict, "conflict-exit-code", "E", exitNotAcquired, "exit status for \"not acquired\"")
	f.DurationVar(&r.ttl, "ttl", 0, "end COMMAND, by SIGTERM and after --grace SIGKILL, when it has run this long (default: never)")
	f.DurationVar(&r.grace, "grace", 0, "time from SIGTERM to SIGKILL when the lock is lost, the TTL is reached, or COMMAND leaves others behind (default: a fifth of the lease)")
	f.StringVar(&r.owner, "owner", "", "owner name of this hold (default: host:pid:random)")
	f.BoolVar(&r.reclaim, "reclaim", false, "end what an earlier run under the same --owner still holds; no two that live may share the name")
	f.StringVar(&r.data, "data", "", "text for others to see by \"holdfast show\"")
	fromEnv(f, "grace", "HOLDFAST_GRACE")
	_ = cmd.RegisterFlagCompletionFunc("key", a.completeKey)
	return cmd
}

// check refuses what makes no sense before anything is sent.
func (r *runFlags) check(cmd *cobra.Command, args []string) error {
	waits := cmd.Flags().Changed("wait")
	switch {
	case r.key == "":
		return usagef("which key? Give -k KEY")
	case len(args) == 0:
		return usagef("which command? Give it after the flags: holdfast run -k KEY -- COMMAND")
	case waits && r.try:
		return usagef("--wait and --try exclude each other")
	case waits && r.wait <= 0:
		return usagef("--wait: %v is not positive; --try does not wait", r.wait)
	case r.ttl < 0:
		return usagef("--ttl: %v is negative", r.ttl)
	case r.grace < 0:
		return usagef("--grace: %v is negative", r.grace)
	case r.conflict < 0 || r.conflict > 255:
		return usagef("--conflict-exit-code: %d is not from 0 to 255", r.conflict)
	case r.reclaim && r.owner == "":
		return usagef("--reclaim needs --owner")
	}
	if r.owner != "" {
		return holdfast.CheckOwner("--owner", r.owner)
	}
	return nil
}

// options are those of the acquisition.
func (r *runFlags) options() []holdfast.Option {
	var opts []holdfast.Option
	if r.data != "" {
		opts = append(opts, holdfast.WithData([]byte(r.data)))
	}
	if r.owner != "" {
		opts = append(opts, holdfast.WithOwner(r.owner))
	}
	if r.reclaim {
		opts = append(opts, holdfast.WithReclaim())
	}
	if r.wait > 0 {
		opts = append(opts, holdfast.WithWait(r.wait))
	}
	return opts
}
