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
		_, height := screen.Size()
		screen.Clear()
		for y, text := range layOut(present, height) {
			screen.PutStr(0, y, text)
		}
		screen.Show()
	}
}

// obey obeys a key. In the terminal's raw mode Ctrl-C and the like are keys.
func obey(screen tcell.Screen, key *tcell.EventKey) (done bool, err error) {
	switch key.Key() {
	case tcell.KeyRune:
		return strings.EqualFold(string(key.Rune()), "q"), nil
	case tcell.KeyCtrlC:
		return true, &exitError{code: 128 + int(syscall.SIGINT)}
	case tcell.KeyCtrlBackslash:
		return true, &exitError{code: 128 + int(syscall.SIGQUIT)}
	case tcell.KeyCtrlL:
		screen.Sync()
	case tcell.KeyCtrlZ:
		_ = screen.Suspend()
		stopGroup()
	}
	return false, nil
}

// awaitForeground waits while another program has the foreground: a program that changes the terminal from the background is stopped, and
// then SIGTERM does not end it.
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

// layOut turns a sight into a page: the rows of "show", and at the foot the state of the connection. Rows without room are counted.
func layOut(s sight, height int) []string {
	var text strings.Builder
	_ = describe(&text, s.info)
	rows := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	room := max(height-1, 1)
	if more := len(rows) - room + 1; more > 1 {
		rows = append(rows[:room-1], fmt.Sprintf("and %d more lines", more))
	}
	rows = append(rows, make([]string, room-len(rows))...)
	foot := "connected; q ends"
	switch {
	case !s.down.IsZero():
		foot = "disconnected since " + s.down.Local().Format(time.TimeOnly) + "; this may be outdated"
	case s.trouble != nil:
		foot = "this may be outdated: " + message(s.trouble)
	}
	return append(rows, foot)[:max(height, 1)]
}
