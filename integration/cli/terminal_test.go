package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// A terminal is a tmux window with an interactive shell, as a person uses it. The tool is
// called "holdfast" there and finds its engine.
type terminal struct {
	t      *testing.T
	dir    string // the shell's directory, and DIR
	socket string
	env    []string
}

// newTerminal opens a window.
func newTerminal(t *testing.T, e *engine, settings ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("tmux is missing; \"make setup\" installs it: %v", err)
	}
	// Not t.TempDir: the path of a socket must be short.
	dir, err := os.MkdirTemp("", "holdfast-tty-")
	if err != nil {
		t.Fatal(err)
	}
	w := &terminal{t: t, dir: dir, socket: filepath.Join(dir, "tmux")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.env = environment(append(append(e.env, settings...),
		"DIR="+dir, "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"), "TERM=screen", "HISTFILE=", "ENV=", "HOLDFAST_LEASE="+calm)...)
	server, err := child.Start(filepath.Join(dir, "log"), false, "env", append([]string{"-i"}, append(w.env, "tmux", "-D", "-f", "/dev/null", "-S", w.socket)...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", w.screen())
		}
		w.close()
		server.Kill()
	})
	if !becomes(func() bool { _, err := os.Stat(w.socket); return err == nil }) {
		t.Fatal("tmux does not start")
	}
	if err := os.WriteFile(w.file("rc"), []byte("PS1='$ '\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.tmux("new-session", "-d", "-x", "100", "-y", "40", "exec bash --noprofile --rcfile "+w.file("rc")+" -i")
	w.shows("$")
	return w
}

// tmux runs a tmux command.
func (w *terminal) tmux(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(limited(w.t), "tmux", append([]string{"-S", w.socket}, args...)...)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// close closes the window.
func (w *terminal) close() {
	cmd := exec.Command("tmux", "-S", w.socket, "kill-session")
	cmd.Env = w.env
	_ = cmd.Run()
}

func (w *terminal) screen() string {
	cmd := exec.Command("tmux", "-S", w.socket, "capture-pane", "-p", "-J")
	cmd.Env = w.env
	out, _ := cmd.Output()
	return strings.TrimSpace(string(out))
}

// enter types a line.
func (w *terminal) enter(format string, args ...any) {
	w.t.Helper()
	w.tmux("send-keys", "-l", fmt.Sprintf(format, args...))
	w.press("Enter")
}

// press presses a key, such as C-c.
func (w *terminal) press(key string) {
	w.t.Helper()
	w.tmux("send-keys", key)
}

// shows waits for a text on the screen.
func (w *terminal) shows(text string) {
	w.t.Helper()
	if !becomes(func() bool { return strings.Contains(w.screen(), text) }) {
		w.t.Fatalf("the terminal never shows %q", text)
	}
}

// clear clears the screen, so that what it shows next is new.
func (w *terminal) clear() {
	w.t.Helper()
	w.prompts()
	w.enter("clear")
	if !becomes(func() bool { return w.screen() == "$" }) {
		w.t.Fatal("the screen does not get clear")
	}
}

// prompts waits until the shell has the terminal again: it prints what it is asked to.
// The question looks different from the answer.
func (w *terminal) prompts() {
	w.t.Helper()
	n := keys.Add(1)
	w.enter("echo answer-$((%d+1)).", n-1)
	w.shows(fmt.Sprintf("answer-%d.", n))
}

func (w *terminal) file(name string) string { return filepath.Join(w.dir, name) }

// writes waits until a file has a text in it.
func (w *terminal) writes(name, text string) {
	w.t.Helper()
	if !becomes(func() bool { return strings.Contains(read(w.file(name)), text) }) {
		w.t.Fatalf("never: %q in the file %q, which has %q", text, name, read(w.file(name)))
	}
}

// pid waits for a process id in a file.
func (w *terminal) pid(name string) int {
	w.t.Helper()
	w.writes(name, "\n")
	var pid int
	if _, err := fmt.Sscan(read(w.file(name)), &pid); err != nil {
		w.t.Fatal(err)
	}
	return pid
}

// TestTerminalForeground checks that the command can use the terminal, and that
// the shell has it again afterwards.
func TestTerminalForeground(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		w.enter(`holdfast run -k %s -- sh -c 'echo question; read x; echo "answer was $x"; exit 3'; echo "status $?"`, newKey(t))
		w.shows("\nquestion")
		w.enter("hello")
		w.shows("\nanswer was hello")
		w.shows("status 3")
		w.prompts()
	})
}

// TestTerminalCtrlC checks that the command gets Ctrl-C once, from the terminal and not
// also from the tool, and may handle it as it likes.
func TestTerminalCtrlC(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		setting, command := testChild(t, "notes signals")
		w := newTerminal(t, e, setting)
		key := newKey(t)
		w.enter(`holdfast run -k %s -- %s; echo "status $?"`, key, command)
		pid := w.pid("pid")
		w.press("C-c")
		w.writes("signals", "INT\n")
		w.press("C-c")
		w.writes("signals", "INT\nINT\n")
		w.press("C-\\")
		w.writes("signals", "INT\nINT\nQUIT\n")
		if err := syscall.Kill(pid, syscall.SIGPIPE); err != nil {
			t.Fatal(err)
		}
		w.shows("status 42")
		if got := read(w.file("signals")); got != "INT\nINT\nQUIT\n" {
			t.Errorf("the command got %q", got)
		}
		w.prompts()
		free(t, e, key)
	})
}

// TestTerminalCtrlZ tests job control: Ctrl-Z stops the tool with its command,
// and fg continues both.
func TestTerminalCtrlZ(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		w.enter(`holdfast run -k %s -- sh -c 'echo $$ >$DIR/pid; echo question; read x; echo "answer was $x"'; echo "status $?"`, newKey(t))
		pid := w.pid("pid")
		w.shows("\nquestion")
		for range 2 {
			w.press("C-z")
			w.shows("Stopped")
			w.prompts()
			if s := state(pid); s != "T" {
				t.Errorf("the command is in state %q, want it stopped", s)
			}
			w.clear()
			w.enter("fg")
			if !becomes(func() bool { return state(pid) == "S" }) {
				t.Fatal("the command does not go on")
			}
		}
		w.enter("hello")
		w.shows("\nanswer was hello")
		w.prompts()
	})
}

// TestTerminalCtrlZForLong checks that a command whose lock was lost while it was stopped
// never runs again.
func TestTerminalCtrlZForLong(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		key := newKey(t)
		w.enter(`holdfast run -k %s --lease 5s -- sh -c 'echo $$ >$DIR/pid; read x; touch $DIR/ran'`, key)
		pid := w.pid("pid")
		w.press("C-z")
		w.shows("Stopped")
		lock, err := e.dial(t, "").Acquire(limited(t), key)
		if alive(pid) {
			t.Error("another has the lock while the command is alive")
		}
		if err != nil {
			t.Fatal(err)
		}
		w.enter("fg; echo \"status $?\"")
		w.enter("hello")
		w.shows(" lost: ")
		w.shows("status 79")
		w.prompts()
		if _, err := os.Stat(w.file("ran")); err == nil || alive(pid) {
			t.Error("the command has run on")
		}
		_ = lock.Release(limited(t))
	})
}

// TestTerminalBackground tests a job that starts in the background, asks for the
// terminal, and is brought to the foreground.
func TestTerminalBackground(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		w.enter(`holdfast run -k %s -- sh -c 'echo $PPID >$DIR/tool; echo $$ >$DIR/pid; read x; echo "answer was $x"' &`, newKey(t))
		pid, tool := w.pid("pid"), w.pid("tool")
		if !becomes(func() bool { return state(pid) == "T" && state(tool) == "T" }) {
			t.Fatal("the command reads from a terminal that is not its own")
		}
		// The shell reports a stop before its next prompt; fg before that would continue
		// nothing.
		if !becomes(func() bool { w.prompts(); return strings.Contains(w.screen(), "Stopped") }) {
			t.Fatal("the shell does not know that the job is stopped")
		}
		w.enter("fg")
		if !becomes(func() bool { return state(pid) == "S" }) {
			t.Fatal("the command does not go on")
		}
		w.enter("hello")
		w.shows("\nanswer was hello")
		w.prompts()
	})
}

// TestTerminalPipeline tests pipelines: the command gets the terminal when it asks for
// it, and so does another member of the pipeline, such as a pager.
func TestTerminalPipeline(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		w.enter(`holdfast run -k %s -- sh -c 'echo question >&2; read x; echo "answer was $x"' | cat`, newKey(t))
		w.shows("\nquestion")
		w.enter("hello")
		w.shows("\nanswer was hello")
		w.prompts()
		w.clear()
		w.enter(`holdfast run -k %s -- sh -c 'echo text; until [ -e $DIR/go ]; do sleep 0.02; done' | sh -c 'read t; echo "$t?"; read x </dev/tty; echo "pager got $x"; touch $DIR/go'`, newKey(t))
		w.shows("\ntext?")
		w.enter("space")
		w.shows("\npager got space")
		w.prompts()
	})
}

// TestTerminalModes tests the terminal's modes: a command that is killed cannot
// leave it without echo.
func TestTerminalModes(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		w.enter(`sh -c "holdfast run -k %s --ttl 500ms --grace 1ms -- sh -c 'trap \"\" TERM; stty raw -echo; sleep 1000'; stty -a >$DIR/modes; echo >>$DIR/modes done"`, newKey(t))
		w.writes("modes", "done")
		if got := read(w.file("modes")); strings.Contains(got, "-icanon") || strings.Contains(got, "-echo ") {
			t.Errorf("the modes left behind are %s", got)
		}
		w.prompts()
	})
}

// TestTerminalOutputStops tests the tool on a terminal that stops background output: it
// goes on renewing the lock, and its output appears.
func TestTerminalOutputStops(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		key := newKey(t)
		w.enter(`stty tostop; holdfast run -v -k %s -- sh -c 'echo $$ >$DIR/pid; echo question; read x; kill -TERM $$'; echo "status $?"`, key)
		w.pid("pid")
		e.run(t, "break", key, "--yes").exits(0)
		w.shows("SIGKILL to the command")
		w.shows("status 79")
		w.prompts()
	})
}

// TestTerminalLost tests the end of the terminal: the command gets SIGHUP, and neither
// its processes nor the lock remain.
func TestTerminalLost(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		key := newKey(t)
		w.enter(`holdfast run -k %s -- sh -c 'trap "echo HUP >>$DIR/signals; exit" HUP; echo $$ >$DIR/pid; echo $PPID >$DIR/tool; sleep 1000 & wait'`, key)
		pid, tool := w.pid("pid"), w.pid("tool")
		w.close()
		w.writes("signals", "HUP\n")
		dies(t, "the command", pid)
		dies(t, "holdfast", tool)
		free(t, e, key)
	})
}

// TestTerminalBreak checks that break asks, and accepts only yes.
func TestTerminalBreak(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		w := newTerminal(t, e)
		key := newKey(t)
		lock, err := e.dial(t, "the holder").Acquire(limited(t), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, answer := range []string{"", "n", "what", "C-d", "C-c"} {
			w.clear()
			w.enter(`holdfast break %s; echo "status $?"`, key)
			w.shows("the holder")
			w.shows("[y/N]")
			status := "status 1\n"
			switch answer {
			case "C-c":
				status = "status 130\n"
				w.press(answer)
			case "C-d":
				w.press(answer)
			default:
				w.enter("%s", answer)
			}
			w.shows(status)
			if err := lock.Verify(limited(t)); err != nil {
				t.Fatalf("after the answer %q: %v", answer, err)
			}
		}
		w.clear()
		w.enter(`holdfast break %s; echo "status $?"`, key)
		w.shows("[y/N]")
		w.enter("y")
		w.shows("status 0")
		if lock.Verify(limited(t)) == nil {
			t.Error("the lock was not broken")
		}

		// Another client gets the key between the question and the answer.
		if lock, err = e.dial(t, "another").Acquire(limited(t), key); err != nil {
			t.Fatal(err)
		}
		w.clear()
		w.enter(`holdfast break %s; echo "status $?"`, key)
		w.shows("[y/N]")
		if err := lock.Release(limited(t)); err != nil {
			t.Fatal(err)
		}
		if lock, err = e.dial(t, "a third").Acquire(limited(t), key); err != nil {
			t.Fatal(err)
		}
		w.enter("y")
		w.shows("status 1")
		if err := lock.Verify(limited(t)); err != nil {
			t.Errorf("the grant that nobody had seen was broken: %v", err)
		}
	})
}
