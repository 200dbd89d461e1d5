package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
)

const doctorLong = `Check whether locks will work: connect to each server, or to the table; check settings,
permissions, clocks and latencies, and the locks whose keys begin with PREFIX.

Each finding is a line: ok, skipped, warning or problem, the name of the check, and what
was found. A skipped check could not be made. Unless all is ok, the line below says what
to do. In JSON, each finding is a line with id, status, found and cure. The exit status
is 1 if there is a problem, and 0 otherwise.

doctor disturbs nobody. What it writes has a name of its own that begins with
holdfast-doctor-, and is removed at the end, after Ctrl-C too. On DynamoDB it reads
the table twice, each time as "ls" does once.

On ZooKeeper:
  server       each of --servers can be connected to, and gives a session
  role         leader, follower, observer or standalone, and the version
  session      the session timeout that the servers make of --lease
  permissions  READ, CREATE and DELETE where the locks are
  write        how long writes to the quorum take
  agreement    the servers show the same contenders: none has diverged
  containers   parents of locks can be made as container znodes
  lock         a lock can be acquired, verified, shown and released
  locks        how many there are
  foreign      znodes in queues that do not contend
  counter      sequence counters near their end
  acl          what everybody may do
  clock        how far the leader's clock is off; locks do not depend on it

On DynamoDB:
  endpoint     region and address
  credentials  where they come from
  table        it is there, and active
  schema       its keys fit
  replicas     copies in other regions, between which locks do not exclude
  ttl          Time to Live fits --ttl-attribute
  permissions  each call that clients make is allowed
  latency      how long writes take
  lock         as above
  reason       a write that is refused tells why
  foreign      items of other programs
  locks        locks that never expire, and corrupt items
  clock        the service's clock, by which requests must be signed`

func newDoctorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "doctor [PREFIX]",
		Short:             "Check whether locks will work, and say what to do if not",
		Long:              doctorLong,
		Args:              takes(0, 1),
		ValidArgsFunction: a.completeKey,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		prefix := strings.Join(args, "") // one, or none
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
