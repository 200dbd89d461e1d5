package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"

	"github.com/holdfast-go/holdfast"
)

// showPages shows each sight on the whole screen of the terminal until ctx ends or the user quits.
func showPages(ctx context.Context, sights <-chan sight) error {
	if err := awaitForeground(ctx); err != nil {
		return err
	}
	screen, err := tcell.NewScreen()
	if err == nil {
		err = screen.Init()
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer screen.Fini()
	keys, quit := make(chan tcell.Event), make(chan struct{})
	defer close(quit)
	go screen.ChannelEvents(keys, quit)
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, continueSignal)
	defer signal.Stop(continued)
	tick := time.NewTicker(time.Second) // the ages change
	defer tick.Stop()
	present, suspended := sight{}, false
	for {
		select {
		case present = <-sights:
		case <-tick.C:
		case <-continued: // the shell may have changed the terminal
			if err := awaitForeground(ctx); err != nil {
				return err
			}
			_ = screen.Suspend()
			if err := screen.Resume(); err != nil {
				return fmt.Errorf("terminal: %w", err)
			}
			suspended = false
		case e := <-keys:
			switch e := e.(type) {
			case *tcell.EventError: // the terminal is gone
				return fmt.Errorf("terminal: %w", e)
			case *tcell.EventResize:
				screen.Sync()
			case *tcell.EventKey:
				if done, err := obey(screen, e); done {
					return err
				}
				suspended = e.Key() == tcell.KeyCtrlZ
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if suspended { // a suspended screen cannot be drawn
			continue
		}
		width, height := screen.Size()
		screen.Clear()
		for y, r := range layOut(present, width, height, time.Now()) {
			screen.PutStrStyled(0, y, fit(printable(r.text), width), r.style)
		}
		screen.Show()
	}
}

// obey does what a key means. In the terminal's raw mode Ctrl-C and the like are keys.
func obey(screen tcell.Screen, key *tcell.EventKey) (done bool, err error) {
	switch key.Key() {
	case tcell.KeyRune:
		return strings.EqualFold(string(key.Rune()), "q"), nil
	case tcell.KeyCtrlC:
		return true, interrupted{syscall.SIGINT}
	case tcell.KeyCtrlBackslash:
		return true, interrupted{syscall.SIGQUIT}
	case tcell.KeyCtrlL:
		screen.Sync()
	case tcell.KeyCtrlZ:
		_ = screen.Suspend()
		stopGroup()
	}
	return false, nil
}

// awaitForeground waits while another program has the foreground: a program that changes the terminal from the background stops, and
// then not even SIGTERM ends it.
func awaitForeground(ctx context.Context) error {
	for !foreground(os.Stdout) {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// A row is one line of the page.
type row struct {
	text  string
	style tcell.Style
}

var bold, reverse = tcell.StyleDefault.Bold(true), tcell.StyleDefault.Reverse(true)

// layOut turns a sight into a page: key, holder, queue, and at the foot how current that is. What does not fit is counted.
func layOut(s sight, width, height int, now time.Time) []row {
	rows := append([]row{{text: plain(s.info.Key), style: bold}, {}}, holderRows(s.info, width, now)...)
	if n := len(s.info.Queue); n > 0 {
		rows = append(rows, row{}, row{text: fmt.Sprintf("waiting  %d", n), style: bold})
	}
	for i, w := range s.info.Queue {
		text := fmt.Sprintf("%d  %-7s  %s", i+1, age("", w.Since, now), plain(w.Owner))
		if len(w.Data) > 0 {
			text += "  " + excerpt(w.Data, width)
		}
		rows = append(rows, row{text: text})
	}
	room := max(height-1, 1)
	if more := len(rows) - room + 1; more > 1 {
		rows = append(rows[:room-1], row{text: fmt.Sprintf("and %d more lines", more)})
	}
	for len(rows) < room {
		rows = append(rows, row{})
	}
	return append(rows, condition(s, now))[:max(height, 1)]
}

// condition says how current the page is.
func condition(s sight, now time.Time) row {
	switch {
	case !s.down.IsZero():
		return row{fmt.Sprintf("disconnected since %s%s; this may be outdated", s.down.Local().Format(time.TimeOnly), age(", ", s.down, now)), reverse}
	case s.trouble != nil:
		return row{"this may be outdated: " + message(s.trouble), reverse}
	}
	return row{text: "connected; q ends"}
}

// holderRows describe the holder, or all that share the key.
func holderRows(info holdfast.Info, width int, now time.Time) []row {
	if !info.Held {
		return []row{{"free", bold}}
	}
	tell := func(t time.Time) string { return moment(t) + age(", ", t, now) }
	data := func(data string) string { return excerpt([]byte(data), width) }
	var rows []row
	if info.Shared {
		name, value := sharing(info)
		rows = append(rows, row{text: fmt.Sprintf("%-9s%s", name, value)})
	}
	for grant := range info.Each() {
		rows = append(rows, row{"held by  " + plain(grant.Owner), bold})
		for _, d := range details(grant, tell, data) {
			rows = append(rows, row{text: fmt.Sprintf("%-9s%s", d[0], d[1])})
		}
	}
	return rows
}

// excerpt makes data harmless. It looks at no more than may fit.
func excerpt(data []byte, width int) string {
	return plain(strings.ToValidUTF8(string(data[:min(len(data), 4*width)]), "\uFFFD"))
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

// age says in a few characters after a prefix how long ago something was, by this machine's clock; "" if that is unknown.
func age(before string, since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	s := int64(max(0, now.Sub(since)) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%s%ds", before, s)
	case s < 3600:
		return fmt.Sprintf("%s%dm%02ds", before, s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%s%dh%02dm", before, s/3600, s/60%60)
	}
	return fmt.Sprintf("%s%dd%02dh", before, s/(24*3600), s/3600%24)
}
