package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

func newShowCommand(a *app) *cobra.Command {
	const short = "Show who holds a key and who waits for it"
	return a.keyCommand("show", short, &connectOptions{}, func(ctx context.Context, c *client, key string) error {
		info, err := a.inspect(ctx, c, key)
		switch {
		case err != nil:
			return err
		case a.json():
			return a.printJSON(newLockJSON(info))
		}
		return describe(a.out, info)
	})
}

// holders names the holders of a key: the oldest, the number of others that share it, and the mode.
func holders(info holdfast.Info) string {
	name := cut(plain(info.Owner), 2*holdfast.MaxOwner)
	if n := len(info.Holders); n > 1 {
		name += fmt.Sprintf(" and %d more", n-1)
	}
	if mode := (driver.Mode{Shared: info.Shared, Limit: info.Limit}); mode.Shared {
		name += fmt.Sprintf(" (%v)", mode)
	}
	return name
}

// details returns the known facts about a holder other than its name, as names and values. tell and data format moments and data.
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
	switch {
	case !info.Shared:
	case info.Limit > 0:
		fmt.Fprintf(t, "permits\t%d of %d\n", len(info.Holders), info.Limit)
	default:
		fmt.Fprintf(t, "shared\tby %d\n", len(info.Holders))
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

// heard says when the holder was last heard of. Of several it is the oldest one that seems to be dead, if there is one.
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
