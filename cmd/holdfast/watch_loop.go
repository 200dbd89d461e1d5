package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
)

// A sight is what is known of a key.
type sight struct {
	info    holdfast.Info // by the last look that succeeded
	looked  time.Time     // when that was
	down    time.Time     // since when the engine cannot be reached, or has not been looked at again; zero if it can
	trouble error         // why the last look failed; nil if it did not
}

// A display shows what is known, at the beginning, whenever that may have
// changed, and once a second if it wants to.
type display interface {
	show(s sight) error
}

// looks say when to look at a key.
type looks struct {
	interval time.Duration                    // from the end of one look to the beginning of the next,
	perNode  time.Duration                    // or this for each contender, if that is more,
	idle     time.Duration                    // or this, if nothing tells of a change
	alarm    func(key string) <-chan zk.Event // sets a watch that tells of the next change; nil if none can be set
}

// A watcher looks at a key again and again. Everything but the looks themselves
// happens on the goroutine of run.
type watcher struct {
	app    *app
	key    string
	client *client
	looks

	seen    sight
	looking chan look       // of the look that is under way; nil if none is
	ended   time.Time       // of the last look
	ring    <-chan zk.Event // of the alarm; nil if it is not set
	wanted  bool            // there may be something new
	back    bool            // the engine can be reached again
}

// A look is what came of one.
type look struct {
	info     holdfast.Info
	err      error
	ring     <-chan zk.Event // if an alarm was set
	panicked any             // what a panic in it was about
}

// first is the look that has to succeed.
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

// wait returns when no look is under way any more.
func (w *watcher) wait() {
	if w.looking != nil {
		<-w.looking
	}
}

// begin looks at the key in the background. The alarm is set before, so that no
// change is missed in between.
func (w *watcher) begin(ctx context.Context) {
	done := make(chan look, 1)
	w.looking, w.wanted = done, false
	alarmed := w.alarm == nil || w.ring != nil
	go func() {
		var l look
		defer func() {
			if p := recover(); p != nil { // it would leave the terminal as it is
				l.panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			}
			done <- l
		}()
		ctx, cancel := w.app.bounded(ctx)
		defer cancel()
		if !alarmed {
			l.ring = w.alarm(w.key)
		}
		l.info, l.err = w.client.Inspect(ctx, w.key)
	}()
}

func (w *watcher) note(l look) {
	if l.panicked != nil {
		panic(l.panicked)
	}
	if l.ring != nil {
		w.ring = l.ring
	}
	w.ended = time.Now()
	if w.back && !errors.Is(l.err, holdfast.ErrDisconnected) {
		w.back, w.seen.down = false, time.Time{}
	}
	if w.seen.trouble = l.err; l.err == nil {
		w.seen.info, w.seen.looked = l.info, w.ended
	}
}

// next is when to look again.
func (w *watcher) next() time.Time {
	if w.wanted {
		return w.ended.Add(max(w.interval, time.Duration(2+len(w.seen.info.Queue))*w.perNode))
	}
	return w.ended.Add(w.idle)
}

// run shows what there is to see until ctx ends or the user has seen enough.
func (w *watcher) run(ctx context.Context, d display, s *screen.Screen, tick <-chan time.Time) error {
	events := w.client.Events()
	defer events.Close()
	var inputs <-chan screen.Input
	if s != nil {
		inputs = s.Inputs()
	}
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		if err := d.show(w.seen); err != nil {
			return err
		}
		var begin <-chan time.Time
		if w.looking == nil {
			due.Reset(time.Until(w.next()))
			begin = due.C
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-begin:
			w.begin(ctx)
		case l := <-w.looking:
			w.looking = nil
			w.note(l)
		case <-w.ring:
			w.ring, w.wanted = nil, true
		case e := <-events.Disconnected():
			w.back, w.seen.down = false, e.Time
		case <-events.Ready():
			w.back, w.wanted = true, true
			w.ended = time.Time{} // at once
		case in := <-inputs:
			if done, err := obey(s, in); done || err != nil {
				return err
			}
		case <-tick:
		}
	}
}

// obey does what the user or the terminal wants.
func obey(s *screen.Screen, in screen.Input) (done bool, err error) {
	switch {
	case in.Lost != nil:
		return true, in.Lost
	case in.Signal != nil:
		return false, s.Handle(in.Signal)
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
