package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
)

func newDoctorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "doctor [PREFIX]",
		Short:             "Check whether locks will work, and say what to do if not",
		Args:              takes(0, 1),
		ValidArgsFunction: a.completeKey,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		prefix := strings.Join(args, "") // one or none
		e, err := a.set.chosenEngine()
		if err != nil {
			return err
		}
		examine, err := e.doctor(cmd.Context(), a, prefix)
		if err != nil {
			return err
		}
		found := make(map[doctor.Status]int)
		err = examine(cmd.Context(), func(f doctor.Finding) error {
			found[f.Status]++
			return a.printFinding(f)
		})
		if err == nil && found[doctor.Problem] > 0 {
			return no("problems: %d, warnings: %d", found[doctor.Problem], found[doctor.Warning])
		}
		return err
	}
	return cmd
}

// printFinding prints a finding at once. Its text may contain foreign text.
func (a *app) printFinding(f doctor.Finding) error {
	if a.json() {
		return a.printJSON(f)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-8s %-11s  %s\n", f.Status, f.ID, line(f.Found))
	if f.Cure != "" {
		fmt.Fprintf(&text, "%22s%s\n", "", line(f.Cure))
	}
	_, err := fmt.Fprint(a.out, text.String())
	return err
}
