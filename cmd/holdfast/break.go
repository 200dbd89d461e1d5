package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
)

func newBreakCommand(a *app) *cobra.Command {
	var yes, all, now bool
	var token uint64
	cmd := &cobra.Command{
		Use:               "break KEY",
		Short:             "Take a lock away from its holder",
		Args:              exactlyOneKey,
		ValidArgsFunction: a.completeKey,
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().Uint64Var(&token, "token", 0, "break only the grant with this fencing token")
	cmd.Flags().BoolVar(&all, "all", false, "break the grants of all who share the key")
	cmd.Flags().BoolVar(&now, "now", false, "free the key at once, before its holder knows of it (on DynamoDB; elsewhere break always does)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f, ok := a.in.(*os.File); !yes && (!ok || !term.IsTerminal(int(f.Fd()))) {
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
		others := len(info.Holders) > 1 && !all // who keep the key
		switch {
		case err != nil:
			return err
		case !info.Held:
			return no("nobody holds %q", info.Key)
		case cmd.Flags().Changed("token"):
			if info, err = withGrant(info, holdfast.Token(token)); err != nil {
				return err
			}
		case len(info.Holders) > 1 && !all:
			return usagef("%d share %q: say by --token whose lock to break, or --all", len(info.Holders), info.Key)
		}
		if !yes {
			if err := a.confirm(cmd.Context(), info); err != nil {
				return err
			}
		}
		ctx, cancel = a.bounded(cmd.Context())
		defer cancel()
		end := c.Break
		if now && c.breakNow != nil {
			end = c.breakNow
		}
		if err := breakAll(ctx, end, info); err != nil {
			return err
		}
		free := ""
		if c.breakNow != nil && !now && !others {
			free = whenFree(info)
		}
		if len(info.Holders) > 1 {
			return a.print(newLockJSON(info), "broke the locks of %s, which %s held%s", plain(info.Key), holders(info), free)
		}
		return a.print(newLockJSON(info), "broke the lock of %s, which %s held with token %d%s", plain(info.Key), plain(info.Owner), info.Token, free)
	}
	return cmd
}

// whenFree says when the key of a lock that was broken is free, where its lease goes on.
func whenFree(info holdfast.Info) string {
	var lease time.Duration
	for grant := range info.Each() {
		lease = max(lease, grant.Lease)
	}
	if lease == 0 {
		return "" // it is free
	}
	return fmt.Sprintf("; it is free when its holder has heard of it, or somebody has waited for %v", lease)
}

// withGrant is what is known of the grant with a token.
func withGrant(info holdfast.Info, token holdfast.Token) (holdfast.Info, error) {
	for grant := range info.Each() {
		if grant.Token == token {
			return grant, nil
		}
	}
	if len(info.Holders) > 1 {
		return info, no("%q is held by %s, none of them with token %d", info.Key, holders(info), token)
	}
	return info, no("%q is held by %s with token %d, not %d", info.Key, plain(info.Owner), info.Token, token)
}

// breakAll breaks the grants that info describes. It is no error that some of several are gone.
func breakAll(ctx context.Context, end func(context.Context, holdfast.Info) error, info holdfast.Info) error {
	var errs []error
	gone := 0
	for grant := range info.Each() {
		switch err := end(ctx, grant); {
		case errors.Is(err, holdfast.ErrChanged):
			gone++
			errs = append(errs, err)
		case err != nil:
			return err
		}
	}
	if gone < max(1, len(info.Holders)) {
		return nil
	}
	return errs[0]
}

// confirm shows a holder and asks whether to continue. No answer means no.
func (a *app) confirm(ctx context.Context, info holdfast.Info) error {
	if err := describe(a.err, info); err != nil {
		return err
	}
	fmt.Fprint(a.err, "Take the lock away? [y/N] ")
	answers := make(chan string, 1)
	go func() { // a read cannot be interrupted; it ends with the program
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
