package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
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

ZooKeeper announces a new holder and new data, which are shown at once. Who waits is
read every --interval (2s by default), and with many waiters less often: that makes no
more than 20 requests a second. DynamoDB is read every --interval: a consistent read,
which is one read unit for items up to 4 KB, 43,200 a day. watch does not see what
comes and goes between two reads. On DynamoDB a holder that has died is shown until its
lease is over.`

func newWatchCommand(a *app) *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:               "watch KEY",
		Short:             "Follow who holds a key and who waits for it",
		Long:              watchLong,
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
		w := &watcher{app: a, key: args[0], client: c, interval: interval}
		// Disconnecting ends a look that is under way.
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
		// An interrupt is the usual way to end it, and needs no message.
		return &exitError{code: exitCode(ctx, context.Cause(ctx))}
	}
	return cmd
}

// minInterval prevents a flood of requests by mistake.
const minInterval = 10 * time.Millisecond

// follow shows what the watcher sees, on the whole screen if possible.
func (a *app) follow(ctx context.Context, w *watcher) error {
	out := a.terminal(a.out)
	if out == nil || a.json() {
		return w.run(ctx, &lines{app: a}, nil, nil)
	}
	in, _ := a.in.(*os.File)
	s, err := screen.Open(in, out)
	if err != nil {
		return err
	}
	defer s.Close() // even after a panic
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	return w.run(ctx, &page{screen: s}, s, tick.C)
}

// terminal returns a writer as a terminal that understands control sequences, or nil.
func (a *app) terminal(w io.Writer) *os.File {
	f, onFile := w.(*os.File)
	termType, _ := a.lookupEnv("TERM")
	if !onFile || !term.IsTerminal(int(f.Fd())) || !screen.Able(termType) {
		return nil
	}
	return f
}

// A sight is what is known of a key.
type sight struct {
	info    holdfast.Info // the newest
	down    time.Time     // since when the engine was unreachable, until a look succeeds; or zero
	trouble error         // why the last look failed; nil if it did not
}

// A display shows a sight: at first, whenever it may have changed, and at each tick.
type display interface {
	show(s sight) error
}

// A look reads who waits, too: one request for each. Looks are at least this far apart.
const (
	minPause     = 250 * time.Millisecond // so that changes which belong together are shown together
	pausePerNode = 5 * time.Millisecond   // for each contender, after a change
	idlePerNode  = 50 * time.Millisecond  // for each, without one
)

// A watcher observes who holds a key, and looks who waits. Where nobody can tell who does, it
// looks only at first, and to find out whether an outage is over. Everything but the looks and
// the observation themselves happens on the goroutine of run.
type watcher struct {
	app      *app
	key      string
	client   *client
	interval time.Duration // at which to look who waits

	seen    sight
	looking chan look // the look under way, or nil
	ended   time.Time // of the last look
	wanted  bool      // something may have changed
	back    bool      // the engine can be reached again
	heard   bool      // of the key, by the observation that goes on
}

// A look is the result of looking at the key.
type look struct {
	info     holdfast.Info
	err      error
	panicked any // the value of a panic in it
}

// first is the look that must succeed.
func (w *watcher) first(ctx context.Context) error {
	w.begin(ctx)
	select {
	case l := <-w.looking:
		w.looking = nil
		w.note(l)
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits for a look that is under way.
func (w *watcher) wait() {
	if w.looking != nil {
		<-w.looking
	}
}

// begin looks at the key in the background.
func (w *watcher) begin(ctx context.Context) {
	done := make(chan look, 1)
	w.looking, w.wanted = done, false
	go func() {
		var l look
		defer func() {
			if p := recover(); p != nil { // run must restore the terminal first
				l.panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			}
			done <- l
		}()
		ctx, cancel := w.app.bounded(ctx)
		defer cancel()
		l.info, l.err = w.client.Inspect(ctx, w.key)
	}()
}

func (w *watcher) note(l look) {
	if l.panicked != nil {
		panic(l.panicked)
	}
	w.ended = time.Now()
	if w.back && !errors.Is(l.err, holdfast.ErrDisconnected) {
		w.back, w.seen.down = false, time.Time{}
	}
	// Where the observation tells everything, it may have told of something newer.
	if w.seen.trouble = l.err; l.err == nil && (w.client.queues || !w.heard) {
		w.seen.info = l.info
	}
}

// told takes in what the observation tells.
func (w *watcher) told(info holdfast.Info) {
	w.heard = true
	if w.client.queues {
		w.wanted = true
	} else {
		w.seen.info = info
	}
}

// due returns a channel for the moment of the next look; nil if there is to be none.
func (w *watcher) due() <-chan time.Time {
	contenders := time.Duration(2 + len(w.seen.info.Queue))
	switch {
	case w.looking != nil:
		return nil
	case w.wanted:
		return time.After(time.Until(w.ended.Add(max(min(w.interval, minPause), contenders*pausePerNode))))
	case w.client.queues || w.seen.trouble != nil:
		return time.After(time.Until(w.ended.Add(max(w.interval, contenders*idlePerNode))))
	}
	return nil
}

// observe sends who holds the key, and each change, until ctx ends. What goes wrong a look tells.
func (w *watcher) observe(ctx context.Context, changes chan<- holdfast.Info, broken chan<- struct{}) {
	for ctx.Err() == nil {
		for info, err := range w.client.Observe(ctx, w.key) {
			if err != nil {
				break
			}
			if info.Stale {
				continue // "disconnected" is shown
			}
			select {
			case changes <- info:
			case <-ctx.Done():
				return
			}
		}
		select {
		case broken <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(w.interval):
		case <-ctx.Done():
		}
	}
}

// run shows the key until ctx ends or the user quits.
func (w *watcher) run(ctx context.Context, d display, s *screen.Screen, tick <-chan time.Time) error {
	events := w.client.Events()
	defer events.Close()
	observing, cancel := context.WithCancel(ctx)
	changes, broken, ended := make(chan holdfast.Info), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w.observe(observing, changes, broken)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	var inputs <-chan screen.Input
	var signals <-chan os.Signal
	if s != nil {
		inputs, signals = s.Inputs(), s.Signals()
	}
	for {
		if err := d.show(w.seen); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.due():
			w.begin(ctx)
		case l := <-w.looking:
			w.looking = nil
			w.note(l)
		case info := <-changes:
			w.told(info)
		case <-broken:
			w.heard, w.wanted = false, true
		case e := <-events.Disconnected():
			w.back, w.seen.down = false, e.Time
		case <-events.Ready():
			w.back, w.wanted = true, true
			if w.ended = (time.Time{}); !w.client.queues {
				w.ended = time.Now() // the observation tells what is new before the look says that all is well
			}
		case in := <-inputs:
			if done, err := obey(s, in); done || err != nil {
				return err
			}
		case sig := <-signals:
			if err := s.Handle(sig); err != nil {
				return err
			}
		case <-tick:
		}
	}
}

// obey does what the user or the terminal wants.
func obey(s *screen.Screen, in screen.Input) (done bool, err error) {
	if in.Lost != nil {
		return true, in.Lost
	}
	switch in.Key {
	case 'q', 'Q':
		return true, nil
	case screen.SuspendKey:
		s.Suspend()
	case 'L' - '@': // Ctrl-L
		return false, s.Redraw()
	}
	return false, nil
}
