package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// A terminal is a tmux window with an interactive shell that finds "holdfast" and its engine.
type terminal struct {
	folder
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
	must(t, err)
	w := &terminal{folder: folder{t, dir, func() bool { return false }}, socket: filepath.Join(dir, "tmux")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.env = environment(append(append(e.env, settings...),
		"DIR="+dir, "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"), "TERM=screen", "HISTFILE=", "ENV=", "HOLDFAST_LEASE="+calm)...)
	server, err := child.Start(filepath.Join(dir, "log"), false, "env", append([]string{"-i"}, append(w.env, "tmux", "-D", "-f", "/dev/null", "-S", w.socket)...)...)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal shows:\n%s", w.screen())
		}
		w.close()
		server.Kill()
	})
	await(t, func() bool { _, err := os.Stat(w.socket); return err == nil }, "tmux does not start")
	must(t, os.WriteFile(w.file("rc"), []byte("PS1='$ '\n"), 0o644))
	w.tmux("new-session", "-d", "-x", "100", "-y", "40", "exec bash --noprofile --rcfile "+w.file("rc")+" -i")
	w.shows("$")
	return w
}

// eachTerminal runs a test on both engines, with a terminal and a key.
func eachTerminal(t *testing.T, test func(t *testing.T, e *engine, w *terminal, key string)) {
	t.Helper()
	each(t, func(t *testing.T, e *engine) { test(t, e, newTerminal(t, e), newKey(t)) })
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
	await(w.t, func() bool { return strings.Contains(w.screen(), text) }, "the terminal never shows %q", text)
}

// clear clears the screen, so that what it shows next is new.
func (w *terminal) clear() {
	w.t.Helper()
	w.prompts()
	w.enter("clear")
	await(w.t, func() bool { return w.screen() == "$" }, "the screen does not get clear")
}

// prompts waits until the shell has the terminal again. The command looks different from its output.
func (w *terminal) prompts() {
	w.t.Helper()
	n := keys.Add(1)
	w.enter("echo answer-$((%d+1)).", n-1)
	w.shows(fmt.Sprintf("answer-%d.", n))
}

// suspend presses Ctrl-Z, which must stop the process, and clears the screen.
func (w *terminal) suspend(pid int) {
	w.t.Helper()
	w.press("C-z")
	w.shows("Stopped")
	w.prompts()
	if s := state(pid); s != "T" {
		w.t.Errorf("the command is in state %q, want it stopped", s)
	}
	w.clear()
}

// TestTerminalCtrlC checks that the command gets Ctrl-C once: from the terminal, not also from the tool.
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
		must(t, syscall.Kill(pid, syscall.SIGPIPE))
		w.shows("status 42")
		if got := read(w.file("signals")); got != "INT\nINT\nQUIT\n" {
			t.Errorf("the command got %q", got)
		}
		w.prompts()
		free(t, e, key)
	})
}

// TestTerminalCtrlZ tests job control: Ctrl-Z stops the tool with its command, and fg continues both.
func TestTerminalCtrlZ(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		w.enter(`holdfast run -k %s -- sh -c 'echo $$ >$DIR/pid; echo question; read x; echo "answer was $x"; exit 3'`, key)
		pid := w.pid("pid")
		w.shows("\nquestion")
		for range 2 {
			w.suspend(pid)
			w.enter("fg")
			await(t, func() bool { return state(pid) == "S" }, "the command does not go on")
		}
		w.enter("hello")
		w.shows("\nanswer was hello")
		w.enter(`echo "status $?"`)
		w.shows("status 3")
		w.prompts()
	})
}

// TestTerminalCtrlZNested checks that Ctrl-Z stops, and fg continues, a command that runs another one under a lock of its own, itself
// or by a script, or in a pipeline, where it has the terminal when it asks for it.
func TestTerminalCtrlZNested(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		const command = `holdfast run -k $KEY.inner -- sh -c 'echo $$ >$DIR/pid; echo question; read x; echo "answer was $x"; exit 3'`
		must(t, os.WriteFile(w.file("script"), []byte(command+"\nexit $?\n"), 0o600))
		has := func(pid int) { // the terminal
			t.Helper()
			await(t, func() bool { s := stat(pid); return s != nil && s[0] == "S" && s[5] == s[2] }, "the command does not go on with the terminal")
		}
		for i, nested := range []string{"sh $DIR/script", command, command + " | cat"} {
			w.clear()
			_ = os.Remove(w.file("pid"))
			w.enter(`set -o pipefail; export KEY=%s; holdfast run -k $KEY -- %s; echo "status $?"`, fmt.Sprint(key, i), nested)
			pid := w.pid("pid")
			w.shows("\nquestion")
			has(pid)
			for range 2 {
				w.suspend(pid)
				w.enter(`fg; echo "status $?"`)
				has(pid)
			}
			w.enter("hello")
			w.shows("\nanswer was hello")
			w.shows("status 3")
			w.prompts()
		}
	})
}

// TestTerminalFromTheStart checks that the command has the terminal before it runs. If it got it afterwards, a command that
// reads at once would be stopped and continued, and a Ctrl-Z in between would be lost.
func TestTerminalFromTheStart(t *testing.T) {
	eachTerminal(t, func(t *testing.T, _ *engine, w *terminal, key string) {
		w.enter(`for i in 1 2 3 4 5; do taskset 1 holdfast run -k %s -- awk '$5 != $8 {print "too", "late"}' /proc/self/stat; done; echo "status $?"`, key)
		w.shows("status 0")
		if strings.Contains(w.screen(), "too late") {
			t.Error("the command runs before it has the terminal")
		}
	})
}

// TestTerminalCtrlZForLong checks that a command whose lock was lost during a stop never runs again.
func TestTerminalCtrlZForLong(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		const lease = 15 * time.Second
		w.enter(`holdfast run -k %s --lease %v -- sh -c 'echo $$ >$DIR/pid; read x; touch $DIR/ran'`, key, lease)
		pid := w.pid("pid")
		w.press("C-z")
		w.shows("Stopped")
		e.expires(t, key, lease, pid)
		w.enter("fg; echo \"status $?\"")
		w.enter("hello")
		w.shows(" lost: ")
		w.shows("status 79")
		w.prompts()
		if _, err := os.Stat(w.file("ran")); err == nil || alive(pid) {
			t.Error("the command has run on")
		}
	})
}

// TestTerminalBackground tests a background job that asks for the terminal and is brought to the foreground.
func TestTerminalBackground(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		w.enter(`holdfast run -k %s -- sh -c 'echo $PPID >$DIR/tool; echo $$ >$DIR/pid; read x; echo "answer was $x"' &`, key)
		pid, tool := w.pid("pid"), w.pid("tool")
		await(t, func() bool { return state(pid) == "T" && state(tool) == "T" }, "the command reads from a terminal that is not its own")
		// The shell reports a stop before its next prompt; fg before that would continue nothing.
		await(t, func() bool { w.prompts(); return strings.Contains(w.screen(), "Stopped") }, "the shell does not know that the job is stopped")
		w.enter("fg")
		await(t, func() bool { return state(pid) == "S" }, "the command does not go on")
		w.enter("hello")
		w.shows("\nanswer was hello")
		w.prompts()
	})
}

// TestTerminalPipeline checks that a command, or a pager beside it, gets the terminal when it asks for it.
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

// TestTerminalModes checks that a killed command cannot leave the terminal without echo.
func TestTerminalModes(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		w.enter(`sh -c "holdfast run -k %s --ttl 3s --grace 1ms -- sh -c 'trap \"\" TERM; stty raw -echo; sleep 1000'; stty -a >$DIR/modes; echo >>$DIR/modes done"`, key)
		w.writes("modes", "done")
		if got := read(w.file("modes")); strings.Contains(got, "-icanon") || strings.Contains(got, "-echo ") {
			t.Errorf("the modes left behind are %s", got)
		}
		w.prompts()
	})
}

// TestTerminalOutputStops tests run on a terminal that stops background output: it continues.
func TestTerminalOutputStops(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		w.enter(`stty tostop; holdfast run -v -k %s -- sh -c 'echo $$ >$DIR/pid; echo question; read x; kill -TERM $$'; echo "status $?"`, key)
		w.pid("pid")
		e.run(t, "break", key, "--yes").exits(0)
		w.shows("SIGKILL to the command")
		w.shows("status 79")
		w.prompts()
	})
}

// TestTerminalLost tests the end of the terminal: neither processes nor the lock remain.
func TestTerminalLost(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
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
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		asked := func() {
			t.Helper()
			w.clear()
			w.enter(`holdfast break %s; echo "status $?"`, key)
			w.shows("[y/N]")
		}
		lock := e.acquire(t, key, "the holder")
		for _, answer := range []string{"Enter", "n Enter", "what Enter", "C-d", "C-c"} {
			asked()
			w.shows("the holder")
			w.tmux(append([]string{"send-keys"}, strings.Fields(answer)...)...)
			w.shows(map[bool]string{true: "status 130\n", false: "status 1\n"}[answer == "C-c"])
			must(t, lock.Verify(limited(t)))
		}
		asked()
		w.enter("y")
		w.shows("status 0")
		if lock.Verify(limited(t)) == nil {
			t.Error("the lock was not broken")
		}

		// Another client gets the key between the question and the answer.
		lock = e.acquire(t, key, "another")
		asked()
		release(t, lock)
		lock = e.acquire(t, key, "a third")
		w.enter("y")
		w.shows("status 1")
		must(t, lock.Verify(limited(t))) // the client had not shown this grant
	})
}
