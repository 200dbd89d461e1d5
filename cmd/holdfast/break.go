package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
)

const breakLong = `Take the lock of KEY away from whoever holds it, so that the next one gets it.

break shows who would lose the lock, and asks. With --yes it does not ask; without a
terminal it needs --yes. With --token it does nothing unless the holder has that
fencing token. If the key gets another holder between the look and the break, nothing
is broken either (exit status 1).

The holder learns of it afterwards: at once on ZooKeeper, within a heartbeat on
DynamoDB. Until then it may act on a lock that is somebody else's; only resources that
compare fencing tokens are safe from that. A command under "holdfast run" is killed
when its holder learns of it.`

func newBreakCommand(a *app) *cobra.Command {
	var yes bool
	var token uint64
	cmd := &cobra.Command{
		Use:               "break KEY",
		Short:             "Take a lock away from its holder",
		Long:              breakLong,
		Args:              exactlyOneKey,
		ValidArgsFunction: a.completeKey,
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().Uint64Var(&token, "token", 0, "break only the grant with this fencing token")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !yes && !a.canAsk() {
			return usagef("break asks first, and standard input is not a terminal: give --yes")
		}
		c, err := a.connect(cmd.Context(), connectOptions{})
		if err != nil {
			return err
		}
		defer a.disconnect(c)
		ctx, cancel := a.bounded(cmd.Context())
		info, err := c.Inspect(ctx, args[0])
		cancel()
		switch {
		case err != nil:
			return err
		case !info.Held:
			return no("nobody holds %q", info.Key)
		case cmd.Flags().Changed("token") && info.Token != holdfast.Token(token):
			return no("%q is held by %s with token %d, not %d", info.Key, plain(info.Owner), info.Token, token)
		}
		if !yes {
			if err := a.confirm(cmd.Context(), info); err != nil {
				return err
			}
		}
		ctx, cancel = a.bounded(cmd.Context())
		defer cancel()
		if err := c.Break(ctx, info); err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(newLockJSON(info))
		}
		_, err = fmt.Fprintf(a.out, "broke the lock of %s, which %s held with token %d\n", plain(info.Key), plain(info.Owner), info.Token)
		return err
	}
	return cmd
}

// canAsk reports whether there is somebody to ask.
func (a *app) canAsk() bool {
	f, ok := a.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// confirm shows a holder and asks whether to go on. No answer is a no.
func (a *app) confirm(ctx context.Context, info holdfast.Info) error {
	if err := describe(a.err, info); err != nil {
		return err
	}
	fmt.Fprint(a.err, "Take the lock away? [y/N] ")
	answers := make(chan string, 1)
	go func() { // it cannot be interrupted, and ends with the program
		answer, err := bufio.NewReader(a.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			answer = ""
		}
		answers <- answer
	}()
	select {
	case answer := <-answers:
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return nil
		}
		return no("nothing broken")
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return context.Cause(ctx)
	}
}
