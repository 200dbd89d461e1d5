package main

import (
	"github.com/spf13/cobra"
)

const electLong = `Stand for election as the leader of KEY, run COMMAND while leading, and stand again.
Whoever holds the lock of KEY leads, so "show", "watch" and "observe" tell who that is,
and --data is what others have to know of the leader, such as its address.

The command line, COMMAND's environment, its end when the lock is lost, the terminal
and the guard are as with "holdfast run": see there. Only when COMMAND and its whole
group have ended is the lock given back, and only then can another lead. What follows
is up to how it has ended:

  exit status 0     it has stepped down: elect stands again, behind those who wait
  another status    elect ends with it, or with 128 + n if signal n killed COMMAND.
                    With --keep-going it stands again
  the lock was lost, --ttl was reached, or somebody asked (--step-down-when-asked)
                    COMMAND was ended, and elect stands again
  126, 127          COMMAND cannot be run: elect ends with that

A signal that ends a program (INT, TERM, HUP, QUIT) ends the candidacy. While elect
waits, it ends with 128 + n. While COMMAND runs, the signal goes to COMMAND, whose
business it is; when it has ended, elect does not stand again and ends with its status.
Ctrl-C on a terminal goes to COMMAND alone: if COMMAND dies of it, elect ends too, even
with --keep-going.

Terms begin at least a second apart. A line on standard error tells of each term's
beginning and end, and of whom elect waits for; -q leaves that out.`

const electExample = `  holdfast elect reports/leader --data 10.0.0.7:8080 -- ./report-server
  holdfast elect cron --keep-going -q -- ./cron.sh`

// electFlags are the flags of elect.
type electFlags struct {
	runFlags
	keepGoing bool
	stepDown  bool // when asked
}

func newElectCommand(a *app) *cobra.Command {
	var e electFlags
	cmd := e.newCommand(a, "elect")
	cmd.Short = "Stand for election, and run a command while leading"
	cmd.Long, cmd.Example = electLong, electExample
	f := cmd.Flags()
	f.BoolVar(&e.keepGoing, "keep-going", false, "stand again also when COMMAND has failed")
	f.BoolVar(&e.stepDown, "step-down-when-asked", false, "end COMMAND, and the term, when somebody asks for it (\"holdfast ask\")")
	f.BoolVarP(&e.quiet, "quiet", "q", false, "do not tell of terms, and of whom elect waits for")
	e.addHoldFlags(cmd, "end COMMAND, and the term, when it has run this long (default: never)")
	e.addCommandFlags(a, cmd)
	e.runs(a, cmd, func() error { return a.elect(cmd.Context(), &e) })
	return cmd
}
