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

// breakFlags are the flags of break.
type breakFlags struct {
	yes, all, now bool
	token         uint64
	tokenSet      bool
}

func newBreakCommand(a *app) *cobra.Command {
	var b breakFlags
	cmd := a.keyCommand("break", "Take a lock away from its holder", &connectOptions{},
		func(ctx context.Context, c *client, key string) error { return a.breakKey(ctx, c, key, b) })
	cmd.Flags().BoolVarP(&b.yes, "yes", "y", false, "do not ask")
	cmd.Flags().Uint64Var(&b.token, "token", 0, "break only the grant with this fencing token")
	cmd.Flags().BoolVar(&b.all, "all", false, "break the grants of all clients that share the key")
	cmd.Flags().BoolVar(&b.now, "now", false, "free the key at once, before its holder knows of it, also on an engine that would wait for the holder")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		b.tokenSet = cmd.Flags().Changed("token")
		if f, ok := a.in.(*os.File); !b.yes && (!ok || !term.IsTerminal(int(f.Fd()))) {
			return usagef("break asks first, and standard input is not a terminal: give --yes")
		}
		return nil
	}
	return cmd
}

func (a *app) breakKey(ctx context.Context, c *client, key string, b breakFlags) error {
	info, err := a.inspectHeld(ctx, c, key)
	if err != nil {
		return err
	}
	others := len(info.Holders) > 1 && !b.all // keep the key
	switch {
	case b.tokenSet:
		if info, err = withGrant(info, holdfast.Token(b.token)); err != nil {
			return err
		}
	case others:
		return usagef("%d share %q: say by --token whose lock to break, or --all", len(info.Holders), info.Key)
	}
	if !b.yes {
		if err := a.confirm(ctx, info); err != nil {
			return err
		}
	}
	end, free := c.Break, ""
	switch {
	case c.breakNow != nil && b.now:
		end = c.breakNow
	case c.breakNow != nil && !others:
		free = whenFree(info)
	}
	if err := a.eachGrant(ctx, info, end); err != nil {
		return err
	}
	if len(info.Holders) > 1 {
		return a.print(newLockJSON(info), "broke the locks of %s, which %s held%s", plain(info.Key), holders(info), free)
	}
	return a.print(newLockJSON(info), "broke the lock of %s, which %s held with token %d%s",
		plain(info.Key), plain(info.Owner), info.Token, free)
}

// whenFree says when the key of a broken lock is free, if the lease goes on.
func whenFree(info holdfast.Info) string {
	var lease time.Duration
	for grant := range info.Each() {
		lease = max(lease, grant.Lease)
	}
	if lease == 0 {
		return "" // it is free
	}
	return fmt.Sprintf("; it is free when its holder learns of it, or another client has waited for %v", lease)
}

// withGrant returns the grant with a token.
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
