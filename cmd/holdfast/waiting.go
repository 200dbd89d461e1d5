package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
)

// The pauses between two looks at the holder by a waiting command. On ZooKeeper a look reads the node of each contender, so with many of
// them looks are rarer: no waiter makes more than ten requests a second.
const (
	waitingFirst    = time.Second      // most waits are over by then
	waitingTerminal = 2 * time.Second  // for a line that is updated
	waitingLines    = 10 * time.Second // for another line per change
	waitingPerNode  = 100 * time.Millisecond
)

// tellWaiting reports on stderr the holder that the client waits for, and the client's place in the queue, until stop is called.
func (a *app) tellWaiting(ctx context.Context, c *client, key string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	w := waiting{app: a, client: c, key: key}
	if !a.set.verbose {
		w.terminal = a.terminal(a.err)
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
	terminal *os.File // for one line that is updated; nil to print lines
	told     string   // last
}

func (w *waiting) run(ctx context.Context) {
	pause, n := waitingLines, 0
	if w.terminal != nil {
		pause = waitingTerminal
		defer w.show("")
	}
	place := holdfast.Event{}
	for wait := waitingFirst; ; wait = max(pause, time.Duration(n)*waitingPerNode) {
		next := time.NewTimer(wait)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				next.Stop()
				return
			case place = <-w.client.places: // too early to look, if many are ahead
				w.key = place.Key
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
		case ctx.Err() != nil, err == nil && info.Held && info.Owner == place.Owner: // the wait is over
		case err != nil:
			w.show(fmt.Sprintf("waiting for %s: %s", plain(w.key), message(err)))
		default:
			n = len(info.Queue)
			w.show(waitingFor(info, place.Owner))
		}
	}
}

// waitingFor formats the owner's place in the queue of a key, and the holder, which a narrow terminal cuts off.
func waitingFor(info holdfast.Info, owner string) string {
	text := "waiting for " + plain(info.Key)
	place, of := 0, 0
	for i, waiter := range info.Queue {
		if waiter.Owner == owner {
			place, of = i+1, of+1
		}
	}
	if of == 1 && owner != "" { // otherwise the place may be that of another client with the same name
		text += fmt.Sprintf(", place %d of %d", place, len(info.Queue))
	}
	if info.Held {
		text += ", held by " + holders(info)
		if len(info.Holders) < 2 {
			text += withToken(info.Token)
		}
		if !info.Since.IsZero() {
			text += " since " + moment(info.Since)
		}
	}
	return text
}

// show prints a line, or replaces the last one on a terminal; "" clears it.
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
			text = fit("holdfast: "+line(text), width-3) // with room for "^C"
		}
		fmt.Fprint(stderr{w.app}, "\r\x1b[K"+text)
	}
	w.told = text
}

// terminal returns a writer as a terminal that understands control sequences, or nil.
func (a *app) terminal(w io.Writer) *os.File {
	f, onFile := w.(*os.File)
	if !onFile || !fullScreen || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	if kind, _ := a.lookupEnv("TERM"); kind == "" || kind == "dumb" {
		return nil
	}
	return f
}

// fit shortens a text to a number of columns, with an ellipsis if anything is missing.
func fit(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(text); g.Next() && used+g.Width() < width; used += g.Width() {
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}
