package main

import (
	"github.com/spf13/cobra"
)

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
	f := cmd.Flags()
	f.BoolVar(&e.keepGoing, "keep-going", false, "stand again even if COMMAND has failed")
	f.BoolVar(&e.stepDown, "step-down-when-asked", false, "end COMMAND, and the term, when another client asks for it (\"holdfast ask\")")
	f.BoolVarP(&e.quiet, "quiet", "q", false, "report neither terms, nor the holder while elect waits")
	e.addHoldFlags(cmd, "end COMMAND, and the term, when it has run this long (default: never)")
	e.addCommandFlags(a, cmd)
	e.runs(a, cmd, func() error { return a.elect(cmd.Context(), &e) })
	return cmd
}
