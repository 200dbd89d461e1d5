package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func newWatchCommand(a *app) *cobra.Command {
	var interval time.Duration
	const short = "Follow who holds a key and who waits for it"
	cmd := a.keyCommand("watch", short, &connectOptions{}, func(parent context.Context, c *client, key string) error {
		w := &watcher{app: a, key: key, client: c, interval: interval}
		if err := w.look(parent); err != nil {
			return err
		}
		ctx, cancel := a.whileRead(parent, true)
		defer cancel()
		return a.ending(parent, ctx, a.follow(ctx, w))
	})
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "how often to read the key")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if interval < minInterval {
			return usagef("--interval: %v, at least %v is needed", interval, minInterval)
		}
		return nil
	}
	return cmd
}

// minInterval prevents a flood of requests by mistake.
const minInterval = 10 * time.Millisecond

// follow shows the state of the key until ctx ends, on the whole screen if possible.
func (a *app) follow(ctx context.Context, w *watcher) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sights := make(chan sight)
	go w.watch(ctx, sights)
	if !a.json() && a.terminal(a.out) != nil {
		return showPages(ctx, sights)
	}
	l := lines{app: a}
	for {
		select {
		case s := <-sights:
			if err := l.show(s); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A sight is the known state of a key.
type sight struct {
	info    holdfast.Info // from the newest look that has succeeded
	down    time.Time     // the begin of an outage; zero without one
	trouble error         // of the last look
}

// pausePerNode is the least pause between two looks for each contender: a look sends one request for each.
const pausePerNode = 50 * time.Millisecond

// A watcher reads a key at an interval.
type watcher struct {
	app      *app
	key      string
	client   *client
	interval time.Duration
	seen     sight
}

// look reads the key, for --timeout at most.
func (w *watcher) look(ctx context.Context) error {
	w.seen.info, w.seen.trouble = w.app.inspect(ctx, w.client, w.key)
	return w.seen.trouble
}

// pause returns the time from the end of a look to the next one.
func (w *watcher) pause() time.Duration {
	return max(w.interval, time.Duration(2+len(w.seen.info.Queue)+len(w.seen.info.Holders))*pausePerNode)
}

// watch sends the state of the key, at first and after each look and outage, until ctx ends.
func (w *watcher) watch(ctx context.Context, sights chan<- sight) {
	events := w.client.Events()
	defer events.Close()
	looked, due, out := make(chan sight, 1), time.After(w.pause()), sights
	for {
		select {
		case <-ctx.Done():
			return
		case out <- w.seen:
			out = nil // until there is another state
			continue
		case <-due:
			due = nil
			go func() {
				info, err := w.app.inspect(ctx, w.client, w.key)
				looked <- sight{info: info, trouble: err}
			}()
			continue
		case s := <-looked:
			if s.trouble != nil { // an outage goes on until a look succeeds
				s.info, s.down = w.seen.info, w.seen.down
				if s.down.IsZero() && errors.Is(s.trouble, holdfast.ErrDisconnected) {
					s.down = time.Now()
				}
			}
			w.seen, due = s, time.After(w.pause())
		case <-events.Disconnected():
			if w.seen.down.IsZero() {
				w.seen.down = time.Now()
			}
		}
		out = sights
	}
}
