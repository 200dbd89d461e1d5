package cli_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// resize makes the window of another size.
func (w *terminal) resize(width, height int) {
	w.t.Helper()
	w.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// page returns all rows of the screen.
func (w *terminal) page() []string {
	w.t.Helper()
	return strings.Split(strings.TrimSuffix(w.tmux("capture-pane", "-p"), "\n"), "\n")
}

// sees waits until rows of the screen begin with these texts, in order.
func (w *terminal) sees(texts ...string) {
	w.t.Helper()
	seen := func() bool {
		rest := texts
		for _, row := range w.page() {
			if len(rest) > 0 && strings.HasPrefix(row, rest[0]) {
				rest = rest[1:]
			}
		}
		return len(rest) == 0
	}
	await(w.t, seen, "the terminal never shows %q", texts)
}

// watched starts a watch in a shell that has printed something before.
func watched(t *testing.T, e *engine, key string) *terminal {
	t.Helper()
	w := newTerminal(t, e, "LC_ALL=C.UTF-8")
	w.resize(80, 20)
	w.enter("clear; echo what was there; holdfast watch %s %s; echo \"status $?\"", key, watchQuick)
	w.sees("key      "+key, "held by  nobody", "connected")
	if w.tmux("display", "-p", "#{alternate_on}#{cursor_flag}") != "10\n" {
		t.Error("it has not taken the screen")
	}
	return w
}

// restored fails the test unless the watch has ended quietly with a status, and the terminal is as before.
func (w *terminal) restored(status int) {
	w.t.Helper()
	w.shows(fmt.Sprintf("\nstatus %d", status))
	if got := w.tmux("display", "-p", "#{alternate_on}#{cursor_flag}#{wrap_flag}"); got != "011\n" {
		w.t.Errorf("alternate screen, cursor and margins are %s, want 011", got)
	}
	if text := w.screen(); !strings.HasPrefix(text, "what was there\nstatus ") {
		w.t.Errorf("the screen is\n%s", text)
	}
	w.modes()
	w.prompts()
}

// modes fails the test unless the terminal's modes are those of a shell.
func (w *terminal) modes() {
	w.t.Helper()
	w.enter("stty -a >$DIR/modes; echo >>$DIR/modes done")
	w.writes("modes", "done")
	got := read(w.file("modes"))
	_ = os.Remove(w.file("modes"))
	if strings.Contains(got, "-icanon") || strings.Contains(got, "-echo ") || !strings.Contains(got, "susp = ^Z") {
		w.t.Errorf("the modes left behind are %s", got)
	}
}

// process returns the id of a child of the window's shell, when there is one.
func (w *terminal) process() int {
	w.t.Helper()
	shell, err := strconv.Atoi(strings.TrimSpace(w.tmux("display", "-p", "#{pane_pid}")))
	must(w.t, err)
	await(w.t, func() bool { return len(childrenOf(shell)) == 1 }, "the shell has no child")
	return childrenOf(shell)[0]
}

// TestWatchTerminal tests the page: holder, queue and age as they change, at each window size.
func TestWatchTerminal(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		w := watched(t, e, key)
		lock := e.acquire(t, key, "\x1b[2J\u202efree\n", holdfast.WithData([]byte("\x1b]0;title\x07")))
		w.sees("key ", "held by ", "token ", e.moment()+" ", "data ", "connected")
		w.shows(`  "\x1b[2J\u202efree\n"`)
		w.shows("  " + lock.Token().String())
		w.shows(`  "\x1b]0;title\a"`)
		age := func() string {
			for _, row := range w.page() {
				if _, age, ok := strings.Cut(row, " ("); ok && strings.HasPrefix(row, e.moment()) {
					return age
				}
			}
			return ""
		}
		before := age()
		if !becomes(func() bool { return age() != before && age() != "" }) {
			t.Errorf("the age stays at %q", before)
		}
		if e.name == "zookeeper" {
			first := e.wait(t, key, "waiter-1")
			w.sees("waiting 1")
			second := e.wait(t, key, "漢字")
			w.sees("waiting 1", "waiting 2")
			w.shows("waiter-1")
			w.shows("漢字")
			first()
			w.sees("waiting 1")
			second()
		}
		for _, size := range [][2]int{{30, 6}, {9, 4}, {120, 30}} {
			width, height := size[0], size[1]
			w.resize(width, height)
			fits := func() bool {
				rows := w.page()
				for i, row := range rows {
					if utf8.RuneCountInString(row) > width {
						return false
					}
					if i == height-1 && !strings.HasPrefix(row, "conne") {
						return false
					}
				}
				return len(rows) == height && strings.HasPrefix(rows[0], "key")
			}
			if !becomes(fits) {
				t.Errorf("a window of %dx%d shows\n%s", width, height, strings.Join(w.page(), "\n"))
			}
		}
		tty := strings.TrimSpace(w.tmux("display", "-p", "#{pane_tty}"))
		if err := os.WriteFile(tty, []byte("\x1b[2J"), 0); err != nil { // another program clears the screen
			t.Fatal(err)
		}
		w.press("C-l")
		w.sees("key ", "held by ", "connected")
		release(t, lock)
		w.sees("key ", "held by  nobody", "connected")
		w.press("q")
		w.restored(0)
	})
}

// TestWatchTerminalEnds tests the ways to end a watch, other than q: the status is the signal's.
func TestWatchTerminalEnds(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for name, end := range map[string]struct {
			status int
			by     func(*terminal)
		}{
			"Ctrl-C":         {130, func(w *terminal) { w.press("C-c") }},
			"Ctrl-backslash": {131, func(w *terminal) { w.press("C-\\") }},
			"SIGTERM":        {143, func(w *terminal) { _ = syscall.Kill(w.process(), syscall.SIGTERM) }},
			"SIGHUP":         {129, func(w *terminal) { _ = syscall.Kill(w.process(), syscall.SIGHUP) }},
			"suspended": {143, func(w *terminal) {
				pid := w.process()
				w.press("C-z")
				w.shows("Stopped")
				_ = syscall.Kill(pid, syscall.SIGTERM)
				w.enter("clear; echo what was there; fg >/dev/null; echo \"status $?\"")
			}},
		} {
			t.Run(name, func(t *testing.T) {
				w := watched(t, e, newKey(t))
				end.by(w)
				w.restored(end.status)
			})
		}
	})
}

// TestWatchTerminalSuspended tests Ctrl-Z, fg and bg. In the background watch touches nothing, and can be
// ended.
func TestWatchTerminalSuspended(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		w := watched(t, e, key)
		pid := w.process()
		suspend := func() {
			t.Helper()
			w.press("C-z")
			// The shell's message may be from an earlier stop.
			await(t, func() bool { return state(pid) == "T" }, "watch does not stop")
			w.prompts()
			w.modes()
		}
		resume := func(command string) {
			t.Helper()
			w.enter("%s", command)
			// The page may still be the old one.
			await(t, func() bool { return state(pid) != "T" }, "watch does not go on")
		}
		suspend()
		lock := e.acquire(t, key, "holder-1")
		resume("fg")
		w.sees("key ", "held by ", "connected")
		w.shows("holder-1")

		suspend()
		resume("clear; bg")
		release(t, lock)
		w.prompts()
		w.modes()
		w.enter("fg")
		w.sees("key ", "held by  nobody", "connected")

		// After a SIGSTOP, it takes the screen again.
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
		w.shows("Stopped")
		w.prompts()
		resume("clear; fg")
		w.sees("key ", "held by  nobody", "connected")

		suspend()
		w.enter("clear; bg; kill %%1; wait")
		dies(t, "watch in the background", pid)
		w.prompts()
		w.modes()
	})
}

// TestWatchTerminalLost checks that watch ends with its terminal, with or without SIGHUP.
func TestWatchTerminalLost(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for name, hup := range map[string]string{"told": "", "not told": "trap '' HUP; "} {
			t.Run(name, func(t *testing.T) {
				key := newKey(t)
				w := newTerminal(t, e)
				w.enter("%sholdfast watch %s", hup, key)
				w.sees("key ", "held by  nobody", "connected")
				pid := w.process()
				w.close()
				dies(t, "watch", pid)
			})
		}
	})
}

// TestWatchTerminalPlain checks that watch prints lines if it cannot or must not show a page.
func TestWatchTerminalPlain(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		for _, command := range []string{"TERM=dumb holdfast watch %s", "env -u TERM holdfast watch %s", "holdfast watch %s -o json", "holdfast watch %s | (trap '' INT; cat)"} {
			key := newKey(t)
			w.enter("clear; "+command+"; echo \"status ${PIPESTATUS[0]}\"", key)
			if !becomes(func() bool {
				text := w.screen()
				return strings.Contains(text, " free key="+key) || strings.Contains(text, `"key":"`+key+`","held":false`)
			}) {
				t.Errorf("%s prints no line", command)
			}
			w.press("C-c")
			w.shows("status 130")
		}
		key := newKey(t)
		w.enter("clear; holdfast watch %s </dev/null; echo \"status $?\"", key) // keys still come from the terminal
		w.sees("key ", "held by  nobody", "connected")
		w.press("q")
		w.shows("status 0")
	})
}
