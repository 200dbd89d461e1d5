//go:build unix

// Package job runs a command as a shell with job control does: in its own process group, which gets signals and the terminal as a whole.
// Unlike a job of a shell, it does not outlive this program: the kernel and a [Guard] kill it.
package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Command is a program with its arguments. It shares the standard streams of this program.
type Command struct {
	Path string   // as [Find] returns it
	Args []string // with the command's name first
	Env  []string

	// Terminal gets the command into its foreground from the start; nil changes no terminal.
	Terminal *Terminal
}

// A Job is a running command with its process group.
type Job struct {
	pid     int // of the command and its group
	changes chan Change
}

// A Change says that the command was stopped or has ended.
type Change struct {
	Stopped syscall.Signal // 0: it has ended
	Status  Status
}

// Status is how a command ended.
type Status struct {
	Code   int            // its exit status
	Signal syscall.Signal // the signal that killed it, or 0; with a signal, Code means nothing
}

// ExitCode is the status as shells report it.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + int(s.Signal)
	}
	return s.Code
}

// Start starts a command in its own process group. On Linux the kernel kills it when this program ends, but not its child processes or a
// command that gained privileges. The guard, which may be nil, kills those; it watches the job until a moment, see [Guard.Watch]. From
// then on the terminal does not stop this program when it prints in the background.
func Start(c Command, g *Guard, until time.Time) (*Job, error) {
	j := &Job{changes: make(chan Change, 1)}
	started := make(chan error, 1)
	go j.run(started, func() error {
		if err := j.start(c); err != nil {
			return err
		}
		g.Watch(j, until) // at once: this program may be killed at any moment
		return nil
	})
	if err := <-started; err != nil {
		return nil, err
	}
	return j, nil
}

// run starts the command and waits for it on one thread: Linux sends the parent-death signal when the parent's thread ends, and Go may end
// any other thread.
func (j *Job) run(started chan<- error, start func() error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := start()
	started <- err
	if err == nil {
		j.wait()
	}
}

func (j *Job) start(c Command) error {
	attr := &os.ProcAttr{
		Env:   c.Env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attributes(),
	}
	if c.Terminal != nil && c.Terminal.Ours() {
		// The child does it, before it runs the command: if this program did, afterwards, a command could
		// read before it may, and Ctrl-Z would be lost with the stop that follows.
		attr.Sys.Foreground, attr.Sys.Ctty = true, c.Terminal.fd
	}
	heedStops()
	defer ignoreStops()
	p, err := os.StartProcess(c.Path, c.Args, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without "#!", which shells run
		args := append([]string{"sh", c.Path}, c.Args[1:]...)
		p, err = os.StartProcess("/bin/sh", args, attr)
	}
	if err != nil {
		if attr.Sys.Foreground { // the child has taken it, and is gone
			ignoreStops()
			c.Terminal.TakeBack(j)
		}
		return err
	}
	j.pid = p.Pid
	return p.Release() // wait4 reports stops, too; p.Wait does not
}

func (j *Job) wait() {
	defer close(j.changes)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(j.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // another process has waited for it, so the status is lost
			j.changes <- Change{Status: Status{Code: 1}}
			return
		case status.Stopped():
			j.changes <- Change{Stopped: status.StopSignal()}
		case status.Signaled():
			j.changes <- Change{Status: Status{Signal: status.Signal()}}
			return
		case status.Exited():
			j.changes <- Change{Status: Status{Code: status.ExitStatus()}}
			return
		}
	}
}

// Changes delivers each change of the command, its end last. The caller must read them.
func (j *Job) Changes() <-chan Change { return j.changes }

// PID is the process id of the command and the id of its group.
func (j *Job) PID() int { return j.pid }

// Signal sends a signal to the whole group. An empty group is not an error.
func (j *Job) Signal(s syscall.Signal) error {
	if err := syscall.Kill(-j.pid, s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Empty reports whether no process of the group is alive. Call it once the command has ended.
func (j *Job) Empty() bool { return EmptyGroup(j.pid) }

// EmptyGroup reports whether no process of a group is alive whose first one has been waited for.
func EmptyGroup(group int) bool {
	// As the first process of a container, this program adopts orphans, and no other process waits for them.
	for {
		pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			break
		}
	}
	err := syscall.Kill(-group, 0)
	return errors.Is(err, syscall.ESRCH) || onlyZombies(group)
}

// Reasons why a command cannot be run.
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("command not executable")
)

// Find looks for a command as execvp(3) does: in PATH, unless its name has a slash. Errors: ErrNotFound, ErrNotExecutable.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // the user has a relative directory in PATH
		return path, nil
	case strings.Contains(name, "/"):
		return "", Explain(err)
	}
	// Nothing executable has the name, but perhaps another file does.
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return "", ErrNotExecutable
		}
	}
	return "", ErrNotFound
}

// Explain converts an error of the operating system to one of the two.
func Explain(err error) error {
	reason := err
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		reason = e.Err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNotFound
	}
	if e := (*fs.PathError)(nil); errors.As(reason, &e) {
		reason = e.Err
	}
	return fmt.Errorf("%w: %w", ErrNotExecutable, reason)
}
