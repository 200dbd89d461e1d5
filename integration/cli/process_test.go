package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// A tool is a process of the binary. Its output goes to files, which unlike pipes need no reader.
type tool struct {
	folder
	cmd    *exec.Cmd
	stdout string
	stderr string
	done   chan struct{}
}

// start starts the tool, through the proxy.
func (e *engine) start(t *testing.T, args ...string) *tool {
	t.Helper()
	return launch(t, e.env, nil, args...)
}

// run runs the tool past the proxy, and waits for its end.
func (e *engine) run(t *testing.T, args ...string) *tool {
	t.Helper()
	p := launch(t, e.direct, nil, args...)
	p.wait()
	return p
}

// launch starts the tool with settings, in its own session and without a terminal.
func launch(t *testing.T, settings []string, stdin io.Reader, args ...string) *tool {
	t.Helper()
	p := prepare(t, settings, args...)
	p.cmd.Stdin = stdin
	return p.launch()
}

func prepare(t *testing.T, settings []string, args ...string) *tool {
	t.Helper()
	p := newTool(t, t.TempDir(), binary(t), args...)
	p.cmd.Env = environment(append(settings, "DIR="+p.dir)...)
	return p
}

func newTool(t *testing.T, dir, program string, args ...string) *tool {
	p := &tool{folder: folder{t: t, dir: dir}, done: make(chan struct{}), cmd: exec.Command(program, args...)}
	p.ended = p.hasEnded
	p.stdout, p.stderr = p.file("stdout"), p.file("stderr")
	return p
}

// exitStatus is the status of a program that has failed; of one that a signal has killed, 128 + n, as shells say.
func exitStatus(err error) int {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return -1
	}
	if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

func (p *tool) launch() *tool {
	t := p.t
	t.Helper()
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for name, to := range map[string]*io.Writer{p.stdout: &p.cmd.Stdout, p.stderr: &p.cmd.Stderr} {
		if *to == nil {
			f, err := os.Create(name)
			must(t, err)
			defer f.Close()
			*to = f
		}
	}
	must(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		select {
		case <-p.done:
		default:
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			t.Logf("holdfast %s: %s\nstdout: %s\nstderr: %s", strings.Join(p.cmd.Args[1:], " "), p.end(), read(p.stdout), read(p.stderr))
		}
	})
	return p
}

// pipe returns the ends of a pipe.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	return r, w
}

// unread returns a pipe without a reader.
func unread(t *testing.T) *os.File {
	t.Helper()
	r, w := pipe(t)
	_ = r.Close()
	return w
}

// end says how the tool has ended.
func (p *tool) end() string { return p.cmd.ProcessState.String() }

// wait waits for the end.
func (p *tool) wait() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		verdict.Fatalf(p.t, "it does not end; stdout %q, stderr %q", read(p.stdout), read(p.stderr))
	}
}

// The statuses of a tool that was not connected in time, and of one that has lost its lock.
const (
	statusFailed = 69
	statusLost   = 79
)

// exits fails the test unless the tool ends with a status and, if that is given, a message.
func (p *tool) exits(status int, says ...string) *tool {
	p.t.Helper()
	p.wait()
	switch got := p.cmd.ProcessState.ExitCode(); got {
	case status:
	case statusFailed, statusLost:
		verdict.Fatalf(p.t, "holdfast ended with %s, want exit status %d; stderr: %s", p.end(), status, read(p.stderr))
	default:
		p.t.Errorf("holdfast ended with %s, want exit status %d; stderr: %s", p.end(), status, read(p.stderr))
	}
	for _, text := range says {
		p.says(text)
	}
	return p
}

// says fails the test unless stderr, without the log and the lines about waiting and outages, is one
// line of the tool with a text in it; "" stands for no line.
func (p *tool) says(text string) {
	p.t.Helper()
	p.wait()
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(read(p.stderr))), func(line string) bool {
		return strings.HasPrefix(line, "time=") || strings.HasPrefix(line, "holdfast: waiting for ") ||
			strings.HasPrefix(line, "holdfast: disconnected: ") || line == "holdfast: connected again\n"
	})
	got := strings.Join(lines, "")
	if text == "" {
		if got != "" {
			p.t.Errorf("stderr is %q, want nothing", got)
		}
		return
	}
	if !strings.HasPrefix(got, "holdfast: ") || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") || !strings.Contains(got, text) {
		p.t.Errorf("stderr is %q, want one line of holdfast's with %q", got, text)
	}
}

// output returns stdout after a successful end.
func (p *tool) output() string {
	p.t.Helper()
	return read(p.exits(0).stdout)
}

// unprintable reports whether a text has a control character.
func unprintable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

func (p *tool) signal(s syscall.Signal) {
	p.t.Helper()
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		verdict.Fatalf(p.t, "it has ended before %s; stderr %q", unix.SignalName(s), read(p.stderr))
	}
	must(p.t, err)
}

// untilGo is a command that exits with 5 once goes is called.
const untilGo = `echo $$ >"$DIR/pid"; until [ -e "$DIR/go" ]; do sleep 0.02; done; exit 5`

// goes ends a command that runs untilGo.
func (p *tool) goes() {
	p.t.Helper()
	must(p.t, os.WriteFile(p.file("go"), nil, 0o644))
}

// gets fails the test unless the command has recorded these signals.
func (p *tool) gets(signals string) {
	p.t.Helper()
	if got := read(p.file("signals")); got != signals {
		p.t.Errorf("the command got the signals %q, want %q", got, signals)
	}
}

func (p *tool) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// stat returns fields of /proc/PID/stat from the state on, nil if there is no such process.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// childrenOf returns the child processes of a process.
func childrenOf(pid int) (all []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		for child := range strings.FieldsSeq(read(thread)) {
			n, _ := strconv.Atoi(child)
			all = append(all, n)
		}
	}
	return all
}

// state is the kernel's letter for what a process does; "" if there is none.
func state(pid int) string {
	if fields := stat(pid); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// alive reports whether a process can do anything.
func alive(pid int) bool {
	s := state(pid)
	return s != "" && s != "Z" && s != "X"
}

// dies waits for the end of a process.
func dies(t *testing.T, what string, pid int) {
	t.Helper()
	if !becomes(func() bool { return !alive(pid) }) {
		t.Errorf("never: %s, process %d, is dead", what, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// asks waits until the tool, run with -v, has connected and requests the lock.
func (p *tool) asks() {
	p.t.Helper()
	p.writes("stderr", "the lock is asked for")
}

// childVariable makes this test binary a command for the tool to run, by name.
const childVariable = "HOLDFAST_CLI_CHILD"

var children = map[string]func(){"notes signals": noteSignals, "pair of stamps": stampPair, "stamps": stamp, "adopts": adopt}

// testChild returns the setting and the command with which the tool runs one of them.
func testChild(t *testing.T, name string) (setting, command string) {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return childVariable + "=" + name, path
}

// noteSignals records its signals until a SIGPIPE. Unlike a shell it has no children that get them too.
func noteSignals() {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals)
	note("pid", fmt.Sprintln(os.Getpid()))
	for s := range signals {
		switch s {
		case syscall.SIGPIPE:
			os.Exit(42)
		case syscall.SIGURG: // Go's own
		default:
			note("signals", shortName(s.(syscall.Signal))+"\n")
		}
	}
}

// shortName is what noteSignals calls a signal.
func shortName(s syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(s), "SIG") }

// note appends to a file in the tool's directory.
func note(name, text string) {
	f, err := os.OpenFile(filepath.Join(os.Getenv("DIR"), name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer f.Close()
	fmt.Fprint(f, text)
}

// adopt becomes the program in its arguments, which then adopts orphans as PID 1 of a container does.
func adopt() {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil {
		_ = os.Unsetenv(childVariable)
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
