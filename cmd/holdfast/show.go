package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

func newShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show KEY",
		Short:             "Show who holds a key and who waits for it",
		Args:              exactlyOneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), connectOptions{})
			if err != nil {
				return err
			}
			defer a.disconnect(c)
			ctx, cancel := a.bounded(cmd.Context())
			defer cancel()
			info, err := c.Inspect(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(newLockJSON(info))
			}
			return describe(a.out, info)
		},
	}
}

// details are the known facts about a holder other than its name, as names and values. tell
// and data format moments and data.
func details(info holdfast.Info, tell func(time.Time) string, data func(string) string) (all [][2]string) {
	for _, d := range []struct {
		known       bool
		name, value string
	}{
		{info.Token != 0, "token", info.Token.String()},
		{!info.Since.IsZero(), "since", tell(info.Since)},
		// Not if the lock was granted at once.
		{!info.QueuedAt.IsZero() && !info.QueuedAt.Equal(info.Since), "queued", tell(info.QueuedAt)},
		{info.Lease != 0, "lease", info.Lease.String()},
		{len(info.Data) > 0, "data", data(string(info.Data))},
	} {
		if d.known {
			all = append(all, [2]string{d.name, d.value})
		}
	}
	return all
}

// describe prints a key and its holder for people.
func describe(w io.Writer, info holdfast.Info) error {
	t := columns(w)
	fmt.Fprintf(t, "key\t%s\n", plain(info.Key))
	if info.Shared {
		name, value := sharing(info)
		fmt.Fprintf(t, "%s\t%s\n", name, value)
	}
	for grant := range info.Each() {
		fmt.Fprintf(t, "held by\t%s\n", plain(grant.Owner))
		for _, d := range details(grant, momentAndAge, plain) {
			fmt.Fprintf(t, "%s\t%s\n", d[0], d[1])
		}
		if !grant.LastHeard.IsZero() {
			fmt.Fprintf(t, "last heard\t%s\n", heard(grant, momentAndAge))
		}
	}
	if !info.Held {
		fmt.Fprintf(t, "held by\tnobody\n")
	}
	for i, waiter := range info.Queue {
		data := ""
		if len(waiter.Data) > 0 {
			data = ", data " + plain(string(waiter.Data))
		}
		if mode := (driver.Mode{Shared: waiter.Shared, Limit: waiter.Limit}); mode.Shared {
			data = fmt.Sprintf(", as a %v%s", mode, data)
		}
		fmt.Fprintf(t, "waiting %d\t%s, since %s%s\n", i+1, plain(waiter.Owner), momentAndAge(waiter.Since), data)
	}
	return t.Flush()
}

// heard is when the holder was last heard of; of several, the oldest one that seems to be dead, if there is one.
func heard(info holdfast.Info, tell func(time.Time) string) string {
	for grant := range info.Each() {
		if grant.SeemsDead(time.Now()) {
			return tell(grant.LastHeard) + ", seems dead"
		}
	}
	return tell(info.LastHeard)
}

// momentAndAge formats a time with its age, by this machine's clock.
func momentAndAge(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%s (%v ago)", moment(t), max(0, time.Since(t)).Round(time.Second))
}

// takes checks the number of arguments.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// exactlyOneKey checks that there is one key. The engine checks the key itself.
func exactlyOneKey(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == "" {
		return usagef("KEY is empty")
	}
	return takes(1, 1)(cmd, args)
}
