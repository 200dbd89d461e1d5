package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// A tool is a process of the binary or another program, with a folder that it finds in DIR. Its output goes to files there, which
// unlike pipes need no reader.
type tool struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stdout string
	stderr string
	done   chan struct{}
}

// launch starts the tool with settings, in its own session and without a terminal.
func launch(t *testing.T, settings []string, args ...string) *tool {
	t.Helper()
	p := newTool(t, t.TempDir(), binary(t), args...)
	p.cmd.Env = append(environment(settings...), "DIR="+p.dir)
	return p.launch()
}

func newTool(t *testing.T, dir, program string, args ...string) *tool {
	p := &tool{t: t, dir: dir, done: make(chan struct{}), cmd: exec.Command(program, args...)}
	p.stdout, p.stderr = p.file("stdout"), p.file("stderr")
	return p
}

// exitStatus is the status of a program that has failed. After a signal it is 128 + n, as in shells.
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
		if !p.hasEnded() {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			t.Logf("%s: %s\nstdout: %s\nstderr: %s", strings.Join(p.cmd.Args, " "), p.cmd.ProcessState, read(p.stdout), read(p.stderr))
		}
	})
	return p
}

func (p *tool) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

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

// exits fails the test unless the tool ends with a status: -1 for an end by a signal.
func (p *tool) exits(status int) *tool {
	p.t.Helper()
	p.wait()
	switch got := p.cmd.ProcessState.ExitCode(); got {
	case status:
	case statusFailed, statusLost:
		verdict.Fatalf(p.t, "holdfast ended with %s, want exit status %d; stderr: %s", p.cmd.ProcessState, status, read(p.stderr))
	default:
		p.t.Errorf("holdfast ended with %s, want exit status %d; stderr: %s", p.cmd.ProcessState, status, read(p.stderr))
	}
	return p
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

func (p *tool) file(name string) string { return filepath.Join(p.dir, name) }

// writes waits until a file has a text in it, or until the tool has ended.
func (p *tool) writes(name, text string) {
	p.t.Helper()
	has := func() bool { return strings.Contains(read(p.file(name)), text) }
	if !becomes(func() bool { return has() || p.hasEnded() }) || !has() {
		verdict.Fatalf(p.t, "never: %q in the file %q, which has %q", text, name, read(p.file(name)))
	}
}

// pid waits for a process id in a file.
func (p *tool) pid(name string) int {
	p.t.Helper()
	p.writes(name, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(read(p.file(name))))
	must(p.t, err)
	return pid
}

func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// state is the kernel's letter for what a process does; "" if there is none.
func state(pid int) string {
	text := read(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	return strings.Join(fields[:min(len(fields), 1)], "")
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

// noteSignals is a program that records its signals until a SIGPIPE. Unlike a shell it has no children that get them too.
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
			note("signals", strings.TrimPrefix(unix.SignalName(s.(syscall.Signal)), "SIG")+"\n")
		}
	}
}

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

// adopt is a program that becomes the one in its arguments, which then adopts orphans as PID 1 of a container does.
func adopt() {
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err == nil {
		err = syscall.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
