package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
)

const watchLong = `Show who holds KEY and who waits for it, and update that as it changes.

On a terminal it takes the whole screen: q or Ctrl-C ends it, Ctrl-Z suspends it,
Ctrl-L redraws it. Elsewhere, and with -o json, it prints one line at first and one
for each change, with the time at which watch saw it:

  TIME held key=KEY owner=NAME token=N since=TIME queued=TIME lease=D data=TEXT
       waiting=N next=NAME
  TIME free key=KEY
  TIME disconnected key=KEY
  TIME unknown key=KEY error=TEXT

Fields that are unknown or empty are left out; what is not plain text is quoted like a
Go string. In JSON each line has "time", "connected", perhaps "error", and the fields
of "show" while the engine answers.

ZooKeeper announces each change; changes within --interval (250ms by default, more
with many waiters) are shown together. An idle watch costs the servers one look in 30
seconds. DynamoDB is read every --interval (2s by default): a consistent read, which
is one read unit for items up to 4 KB, 43,200 a day. watch does not see what comes and
goes between two looks.`

func newWatchCommand(a *app) *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:               "watch KEY",
		Short:             "Follow who holds a key and who waits for it",
		Long:              watchLong,
		Args:              exactlyOneKey,
		ValidArgsFunction: a.completeKey,
	}
	cmd.Flags().DurationVar(&interval, "interval", 0, "minimum time between two looks (default 250ms on ZooKeeper, 2s on DynamoDB)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if interval < 0 || interval != 0 && interval < leastInterval {
			return usagef("--interval: %v, at least %v is needed", interval, leastInterval)
		}
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		c, err := a.connect(ctx, connectOptions{})
		if err != nil {
			return err
		}
		c.looks.interval = cmp.Or(interval, c.looks.interval)
		c.looks.idle = max(c.looks.interval, c.looks.idle)
		w := &watcher{app: a, key: args[0], client: c, looks: c.looks}
		// First the connection ends, which ends a look that is under way.
		defer w.wait()
		defer a.disconnect(c)
		if err := w.first(ctx); err != nil {
			return err
		}
		go func() {
			if err := unread(a.out); err != nil {
				cancel(err)
			}
		}()
		if err := a.follow(ctx, w); !errors.Is(err, context.Canceled) {
			return err
		}
		if broken := context.Cause(ctx); cmd.Context().Err() == nil {
			return broken
		}
		// To interrupt it is the way to end it, and needs no words.
		return &exitError{code: exitCode(ctx, context.Cause(ctx))}
	}
	return cmd
}

// leastInterval keeps a slip from becoming a flood.
const leastInterval = 10 * time.Millisecond

// follow shows what the watcher sees, on the whole screen if that can be had.
func (a *app) follow(ctx context.Context, w *watcher) error {
	out, onFile := a.out.(*os.File)
	termType, _ := a.lookupEnv("TERM")
	if !onFile || a.json() || !term.IsTerminal(int(out.Fd())) || !screen.Able(termType) {
		return w.run(ctx, &lines{app: a}, nil, nil)
	}
	in, _ := a.in.(*os.File)
	s, err := screen.Open(in, out)
	if err != nil {
		return err
	}
	defer s.Close() // in a panic, too
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	return w.run(ctx, &page{screen: s}, s, tick.C)
}
