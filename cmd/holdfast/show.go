package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func newShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show who holds a key and who waits for it",
		Long: `Show who holds KEY, with which fencing token and data, and who waits for it.
"since" is when the present holder was granted the lock, which DynamoDB records;
"queued" is when it joined the queue, which ZooKeeper records: it may have waited
for long, and hold the lock for a moment only. ZooKeeper keeps a queue of those who
wait; DynamoDB does not.

A key that nobody holds is no error; in JSON, "held" tells.`,
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

// describe prints a key and its holder for people.
func describe(w io.Writer, info holdfast.Info) error {
	t := columns(w)
	fmt.Fprintf(t, "key\t%s\n", plain(info.Key))
	if info.Held {
		fmt.Fprintf(t, "held by\t%s\n", plain(info.Owner))
		if info.Token != 0 {
			fmt.Fprintf(t, "token\t%d\n", info.Token)
		}
		if !info.Since.IsZero() {
			fmt.Fprintf(t, "since\t%s\n", momentAndAge(info.Since))
		}
		if showQueuedAt(info) {
			fmt.Fprintf(t, "queued\t%s\n", momentAndAge(info.QueuedAt))
		}
		if info.Lease != 0 {
			fmt.Fprintf(t, "lease\t%v\n", info.Lease)
		}
		if len(info.Data) > 0 {
			fmt.Fprintf(t, "data\t%s\n", plain(string(info.Data)))
		}
	} else {
		fmt.Fprintf(t, "held by\tnobody\n")
	}
	for i, waiter := range info.Queue {
		data := ""
		if len(waiter.Data) > 0 {
			data = ", data " + plain(string(waiter.Data))
		}
		fmt.Fprintf(t, "waiting %d\t%s, since %s%s\n", i+1, plain(waiter.Owner), momentAndAge(waiter.Since), data)
	}
	return t.Flush()
}

// showQueuedAt reports whether it is worth telling when the holder entered the queue:
// it was granted then at once, or nobody knows when.
func showQueuedAt(info holdfast.Info) bool {
	return !info.QueuedAt.IsZero() && !info.QueuedAt.Equal(info.Since)
}

// momentAndAge tells as well how long ago a moment is, by this machine's clock.
func momentAndAge(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%s (%v ago)", moment(t), max(0, time.Since(t)).Round(time.Second))
}

// takes refuses other numbers of arguments.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// exactlyOneKey takes a key. What keys there are, the engine knows.
func exactlyOneKey(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == "" {
		return usagef("KEY is empty")
	}
	return takes(1, 1)(cmd, args)
}
