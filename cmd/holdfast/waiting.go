package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
)

// How often a command that waits looks whom it waits for. A look at ZooKeeper reads
// the node of each contender: with many of them it is made more seldom, so that no
// waiter makes more than ten requests a second for this.
const (
	waitingFirst    = time.Second      // most waits are over by then
	waitingTerminal = 2 * time.Second  // where a line is shown anew
	waitingLines    = 10 * time.Second // where each change is another line
	waitingPerNode  = 100 * time.Millisecond
)

// tellWaiting says on standard error whom the client waits for, and at which place in
// the queue, until the function that it returns is called.
func (a *app) tellWaiting(ctx context.Context, c *client, key string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	w := waiting{app: a, client: c, key: key}
	w.terminal, _ = a.err.(*os.File)
	termType, _ := a.lookupEnv("TERM")
	if w.terminal != nil && (a.set.verbose || !term.IsTerminal(int(w.terminal.Fd())) || !screen.Able(termType)) {
		w.terminal = nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

type waiting struct {
	app      *app
	client   *client
	key      string
	terminal *os.File // that shows one line; nil: lines are printed
	told     string   // last
}

func (w *waiting) run(ctx context.Context) {
	pause, n := waitingLines, 0
	if w.terminal != nil {
		pause = waitingTerminal
		defer w.show("")
	}
	place := holdfast.Place{}
	for wait := waitingFirst; ; wait = max(pause, time.Duration(n)*waitingPerNode) {
		next := time.NewTimer(wait)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				next.Stop()
				return
			case place = <-w.client.places: // far behind, it is too early to look
				if n = place.Ahead; time.Duration(n)*waitingPerNode > pause {
					w.show(fmt.Sprintf("waiting for %s: %d ahead in the queue", plain(w.key), n))
					next.Reset(time.Duration(n) * waitingPerNode)
				}
			case <-next.C:
				due = true
			}
		}
		look, cancel := w.app.bounded(ctx)
		info, err := w.client.Inspect(look, w.key)
		cancel()
		switch {
		case ctx.Err() != nil, err == nil && info.Held && info.Owner == place.Owner: // it is over
		case err != nil:
			w.show(fmt.Sprintf("waiting for %s: %s", plain(w.key), message(err)))
		default:
			n = len(info.Queue)
			w.show(waitingFor(info, place.Owner))
		}
	}
}

// waitingFor says who has a key, and where in the queue an owner is.
func waitingFor(info holdfast.Info, owner string) string {
	text := "waiting for " + plain(info.Key)
	if info.Held {
		text += ", held by " + cut(plain(info.Owner), 2*holdfast.MaxOwner)
		if info.Token != 0 {
			text += fmt.Sprintf(" (token %d)", info.Token)
		}
		if !info.Since.IsZero() {
			text += " since " + moment(info.Since)
		}
	}
	place, of := 0, 0
	for i, waiter := range info.Queue {
		if waiter.Owner == owner {
			place, of = i+1, of+1
		}
	}
	if of == 1 && owner != "" { // else it may be another of the same name
		text += fmt.Sprintf("; place %d of %d in the queue", place, len(info.Queue))
	}
	return text
}

// show prints a line, or puts it where the last one was; "" clears it.
func (w *waiting) show(text string) {
	switch {
	case text == w.told && (text == "" || w.terminal == nil):
		return
	case w.terminal == nil:
		w.app.warn("%s", text)
	case !foreground(w.terminal):
		return
	default:
		if text != "" {
			width, _, err := term.GetSize(int(w.terminal.Fd()))
			if err != nil || width <= 0 {
				width = 80
			}
			text = screen.Cut("holdfast: "+line(text), width-3) // and room for "^C"
		}
		fmt.Fprint(w.terminal, "\r\x1b[K"+text)
	}
	w.told = text
}
