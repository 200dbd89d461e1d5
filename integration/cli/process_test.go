package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A tool is a process of the binary. Its output goes to files: unlike pipes, nobody must
// wait for them.
type tool struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string // for the files of its command
	stdout string
	stderr string
	done   chan struct{}
	deaf   bool // standard error goes where standard output does
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

// launch starts the tool with settings, in its own session and without a terminal. Its
// command finds a directory in DIR.
func launch(t *testing.T, settings []string, stdin io.Reader, args ...string) *tool {
	t.Helper()
	return prepare(t, settings, args...).launch(stdin, nil)
}

// launchTo is launch with another standard output.
func launchTo(t *testing.T, stdout *os.File, settings []string, args ...string) *tool {
	t.Helper()
	return prepare(t, settings, args...).launch(nil, stdout)
}

func prepare(t *testing.T, settings []string, args ...string) *tool {
	t.Helper()
	p := &tool{t: t, dir: t.TempDir(), done: make(chan struct{})}
	p.stdout, p.stderr = filepath.Join(p.dir, "stdout"), filepath.Join(p.dir, "stderr")
	p.cmd = exec.Command(binary(t), args...)
	p.cmd.Env = environment(append(settings, "DIR="+p.dir)...)
	return p
}

func (p *tool) launch(stdin io.Reader, stdout *os.File) *tool {
	t := p.t
	t.Helper()
	p.cmd.Stdin = stdin
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for name, to := range map[string]*io.Writer{p.stdout: &p.cmd.Stdout, p.stderr: &p.cmd.Stderr} {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		*to = f
	}
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	if p.deaf {
		p.cmd.Stdout, p.cmd.Stderr = stdout, stdout
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// end says how the tool has ended.
func (p *tool) end() string { return p.cmd.ProcessState.String() }

// wait waits for the end.
func (p *tool) wait() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("it does not end; stdout %q, stderr %q", read(p.stdout), read(p.stderr))
	}
}

// exits fails the test unless the tool ends with a status.
func (p *tool) exits(status int) {
	p.t.Helper()
	p.wait()
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Errorf("holdfast ended with %s, want exit status %d; stderr: %s", p.end(), status, read(p.stderr))
	}
}

// says fails the test unless stderr, without the log and the lines about waiting, is one
// line of the tool with a text in it; "" stands for no line.
func (p *tool) says(text string) {
	p.t.Helper()
	p.wait()
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(read(p.stderr))), func(line string) bool {
		return strings.HasPrefix(line, "time=") || strings.HasPrefix(line, "holdfast: waiting for ")
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

// prints fails the test unless stdout is a text.
func (p *tool) prints(text string) {
	p.t.Helper()
	p.wait()
	if got := read(p.stdout); got != text {
		p.t.Errorf("stdout is %q, want %q", got, text)
	}
}

func (p *tool) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// untilGo is a command that exits with 5 once goes is called.
const untilGo = `echo $$ >"$DIR/pid"; until [ -e "$DIR/go" ]; do sleep 0.02; done; exit 5`

// goes ends a command that runs untilGo.
func (p *tool) goes() {
	p.t.Helper()
	if err := os.WriteFile(p.file("go"), nil, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// file is the path of one of the command's files.
func (p *tool) file(name string) string { return filepath.Join(p.dir, name) }

// writes waits until one of the command's files contains a text.
func (p *tool) writes(name, text string) {
	p.t.Helper()
	if !becomes(func() bool { return strings.Contains(read(p.file(name)), text) || p.hasEnded() }) ||
		!strings.Contains(read(p.file(name)), text) {
		p.t.Fatalf("never: %q in the command's file %q, which has %q; stderr: %s", text, name, read(p.file(name)), read(p.stderr))
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

// pid waits for a process id in one of the command's files.
func (p *tool) pid(name string) int {
	p.t.Helper()
	p.writes(name, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(read(p.file(name))))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
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

// begins waits until the tool, run with -v, knows that its command runs.
func (p *tool) begins() {
	p.t.Helper()
	p.writes("stderr", "the command has been started")
}
