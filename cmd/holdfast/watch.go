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
	cmd := &cobra.Command{
		Use:               "watch KEY",
		Short:             "Follow who holds a key and who waits for it",
		Args:              exactlyOneKey,
		ValidArgsFunction: a.completeKey,
	}
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "how often to read who waits, or on DynamoDB the key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if interval < minInterval {
			return usagef("--interval: %v, at least %v is needed", interval, minInterval)
		}
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		c, err := a.connect(ctx, connectOptions{poll: interval})
		if err != nil {
			return err
		}
		defer a.disconnect(c)
		w := &watcher{app: a, key: args[0], client: c, interval: interval}
		if err := w.look(ctx); err != nil {
			return err
		}
		go func() {
			if err := unread(a.out); err != nil {
				cancel(err)
			}
		}()
		err = a.follow(ctx, w)
		by := interrupted{}
		switch {
		case errors.As(err, &by), errors.As(context.Cause(ctx), &by): // the usual way to end it needs no message
			return &exitError{code: 128 + int(by.signal)}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		return err
	}
	return cmd
}

// minInterval prevents a flood of requests by mistake.
const minInterval = 10 * time.Millisecond

// follow shows what the watcher sees until ctx ends, on the whole screen if possible.
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

// A sight is what is known of a key.
type sight struct {
	info    holdfast.Info // the newest
	down    time.Time     // since when the engine was unreachable; zero if it can be reached
	trouble error         // why the last look failed; nil if it did not
}

// A look reads the queue, one request for each waiter. Looks are at least this far apart.
const (
	minPause     = 250 * time.Millisecond // so that changes which belong together are shown together
	pausePerNode = 5 * time.Millisecond   // for each contender, after a change
	idlePerNode  = 50 * time.Millisecond  // for each, without one
)

// A watcher observes who holds a key. Where the engine has a queue, it also reads the queue: after each change, and at an interval.
type watcher struct {
	app      *app
	key      string
	client   *client
	interval time.Duration

	seen   sight
	ended  time.Time // of the last look
	wanted bool      // something may have changed
	back   bool      // the engine answers again after an outage, of which the next look tells the end
}

// A change is what an observation or a look tells.
type change struct {
	info holdfast.Info
	err  error
}

// look reads the key, for --timeout at most.
func (w *watcher) look(ctx context.Context) error {
	c := w.inspect(ctx)
	w.note(c)
	return c.err
}

func (w *watcher) inspect(ctx context.Context) (c change) {
	ctx, cancel := w.app.bounded(ctx)
	defer cancel()
	c.info, c.err = w.client.Inspect(ctx, w.key)
	return c
}

func (w *watcher) note(c change) {
	w.ended = time.Now()
	if w.seen.trouble = c.err; c.err == nil {
		w.seen.info = c.info
	}
	if w.back {
		w.back, w.seen.down = false, time.Time{}
	}
}

// due returns a channel for the moment of the next look; nil if there is to be none.
func (w *watcher) due() <-chan time.Time {
	contenders := time.Duration(2 + len(w.seen.info.Queue))
	switch {
	case !w.client.queues || !w.wanted && !w.seen.down.IsZero():
		return nil
	case w.wanted:
		return time.After(time.Until(w.ended.Add(max(min(w.interval, minPause), contenders*pausePerNode))))
	}
	return time.After(time.Until(w.ended.Add(max(w.interval, contenders*idlePerNode))))
}

// observe sends the holder of the key, each change, and why the observation has failed, until ctx ends.
func (w *watcher) observe(ctx context.Context, changes chan<- change) {
	for ctx.Err() == nil {
		for info, err := range w.client.Observe(ctx, w.key) {
			select {
			case changes <- change{info, err}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(w.interval):
		case <-ctx.Done():
		}
	}
}

// told takes in what the observation tells. The info lacks the queue, so where there is one a look follows.
func (w *watcher) told(c change) {
	switch {
	case c.err == nil && c.info.Stale:
		w.back = false
		if w.seen.down.IsZero() {
			w.seen.down = time.Now()
		}
	case w.client.queues:
		w.back, w.wanted = c.err == nil, true
	case c.err != nil:
		w.seen.trouble = c.err
	default:
		w.seen = sight{info: c.info}
	}
}

// watch sends what is known of the key, at first and whenever that may have changed, until ctx ends.
func (w *watcher) watch(ctx context.Context, sights chan<- sight) {
	observed, looked := make(chan change), make(chan change, 1)
	go w.observe(ctx, observed)
	looking, out := false, sights
	for {
		var due <-chan time.Time
		if !looking {
			due = w.due()
		}
		select {
		case <-ctx.Done():
			return
		case out <- w.seen:
			out = nil // until there is something new
			continue
		case <-due:
			looking, w.wanted = true, false
			go func() { looked <- w.inspect(ctx) }()
			continue
		case c := <-looked:
			looking = false
			w.note(c)
		case c := <-observed:
			w.told(c)
		}
		out = sights
	}
}
