package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	columns = 92
	// interval is between two looks at the terminals.
	interval = 100 * time.Millisecond
)

// terminals are the terminals of a tmux server, and the frames seen in them.
// After a first error, kept in err, they do nothing.
type terminals struct {
	dir   string
	env   []string
	all   []*terminal
	began time.Time
	film  film
	err   error
}

// A terminal has a shell in it.
type terminal struct {
	of   *terminals
	name string
	rows int
}

func (t *terminals) tmux(ctx context.Context, args ...string) string {
	if t.err != nil {
		return ""
	}
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-f", "/dev/null", "-S", filepath.Join(t.dir, "tmux")}, args...)...)
	cmd.Env, cmd.Dir = t.env, t.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.err = fmt.Errorf("tmux %q: %w: %s", args, err, out)
	}
	return string(out)
}

func (t *terminals) close() error {
	t.err = nil
	t.tmux(context.Background(), "kill-server")
	return t.err
}

// open opens a terminal, in which a shell shows the name as its prompt.
func (t *terminals) open(ctx context.Context, name string, rows int) *terminal {
	rc := filepath.Join(t.dir, name+".rc")
	if err := os.WriteFile(rc, []byte("PS1='"+name+"$ '\n"), 0o600); err != nil {
		t.err = err
	}
	t.tmux(ctx, "new-session", "-d", "-s", name, "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows),
		"exec bash --noprofile --rcfile "+rc+" -i", ";", "set", "-g", "status", "off")
	w := &terminal{of: t, name: name, rows: rows}
	t.all = append(t.all, w)
	w.until(ctx, func() bool { return strings.Contains(w.text(ctx), name+"$") })
	t.film.windows = append(t.film.windows, window{name, rows})
	return w
}

// look records a frame if the screen has changed.
func (t *terminals) look(ctx context.Context) {
	if len(t.film.windows) < len(t.all) {
		return // they are being opened
	}
	if t.began.IsZero() {
		t.began = time.Now()
	}
	f := frame{at: time.Since(t.began).Round(interval), caption: t.film.caption}
	for _, w := range t.all {
		rows := strings.Split(strings.TrimSuffix(t.tmux(ctx, "capture-pane", "-p", "-e", "-t", w.name), "\n"), "\n")
		f.rows = append(f.rows, rows...)
	}
	if last := len(t.film.frames) - 1; t.err == nil && (last < 0 || !f.same(t.film.frames[last])) {
		t.film.frames = append(t.film.frames, f)
	}
	t.film.length = f.at
}

// caption sets the text below the terminals from now on.
func (t *terminals) caption(text string) { t.film.caption = text }

// pause keeps recording for a while.
func (t *terminals) pause(ctx context.Context, d time.Duration) {
	end := time.Now().Add(d)
	t.until(ctx, func() bool { return time.Now().After(end) })
}

func (t *terminals) until(ctx context.Context, done func() bool) {
	for t.err == nil && !done() {
		t.look(ctx)
		select {
		case <-ctx.Done():
			t.err = context.Cause(ctx)
		case <-time.After(interval):
		}
	}
}

func (w *terminal) until(ctx context.Context, done func() bool) { w.of.until(ctx, done) }

func (w *terminal) text(ctx context.Context) string {
	return w.of.tmux(ctx, "capture-pane", "-p", "-J", "-t", w.name)
}

// enter types a line.
func (w *terminal) enter(ctx context.Context, line string) {
	w.of.tmux(ctx, "send-keys", "-t", w.name, "-l", line)
	w.of.pause(ctx, 5*interval)
	w.of.tmux(ctx, "send-keys", "-t", w.name, "Enter")
}

// shows waits until the screen matches an expression, and returns the match.
func (w *terminal) shows(ctx context.Context, expression string) (found string) {
	w.until(ctx, func() bool {
		var ok bool
		found, ok = find(expression, w.text(ctx))
		return ok
	})
	return found
}

// kill kills the shell's child.
func (w *terminal) kill(ctx context.Context) {
	shell := strings.TrimSpace(w.of.tmux(ctx, "display-message", "-p", "-t", w.name, "#{pane_pid}"))
	children, err := os.ReadFile("/proc/" + shell + "/task/" + shell + "/children")
	pid, _ := strconv.Atoi(strings.TrimSpace(string(children)))
	if err == nil && pid > 1 {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if w.of.err == nil && (err != nil || pid < 2) {
		w.of.err = fmt.Errorf("children of %s: %q: %w", shell, children, err)
	}
}

// A film is a sequence of frames.
type film struct {
	windows []window
	frames  []frame
	length  time.Duration
	caption string
}

type window struct {
	name string
	rows int
}

// A frame is the screen from a moment on.
type frame struct {
	at      time.Duration
	rows    []string // of all windows, with the control sequences of their colours
	caption string
}

func (f frame) same(other frame) bool {
	return f.caption == other.caption && slices.Equal(f.rows, other.rows)
}
