//go:build unix

// Package job runs a command as a shell with job control would: in a process
// group of its own, to which signals go as a whole, with the terminal handed
// over and taken back. Unlike what a shell runs, it does not outlive this program:
// the kernel sees to that, and a [Guard].
package job

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Command is what to run. Its standard streams are those of this program.
type Command struct {
	Path string   // as [Find] returns it
	Args []string // the name it was called by first
	Env  []string
}

// A Job is a command that has been started, with the process group that it leads.
type Job struct {
	pid     int // of the command; and the group's id
	changes chan Change
}

// A Change is what has become of the command: it was stopped, by a signal as
// those of job control, or it has ended.
type Change struct {
	Stopped syscall.Signal // 0: it has ended
	Status  Status
}

// Status is how a command has ended.
type Status struct {
	Code   int            // its exit status
	Signal syscall.Signal // what it died of, 0 if of nothing; Code then means nothing
}

// ExitCode is the status in the way of shells.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + int(s.Signal)
	}
	return s.Code
}

// Start starts a command in a process group of its own. On Linux it dies with
// this program, however that ends: not what the command has started itself,
// though, nor a command that gets other privileges by being executed. A guard sees
// to these; it may be nil, and is to watch the job until a moment: see
// [Guard.Watch].
func Start(c Command, g *Guard, until time.Time) (*Job, error) {
	j := &Job{changes: make(chan Change, 1)}
	started := make(chan error, 1)
	go j.run(started, func() error {
		if err := j.start(c); err != nil {
			return err
		}
		g.Watch(j, until) // without delay: this program may be killed any moment
		return nil
	})
	if err := <-started; err != nil {
		return nil, err
	}
	return j, nil
}

// run starts the command and waits for it on one thread: Linux sends the signal
// that tells of a parent's death when the thread ends that was the parent, and
// Go ends threads as it likes.
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
	p, err := os.StartProcess(c.Path, c.Args, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without "#!", which is the shell's by custom
		args := append([]string{"sh", c.Path}, c.Args[1:]...)
		p, err = os.StartProcess("/bin/sh", args, attr)
	}
	if err != nil {
		return err
	}
	j.pid = p.Pid
	return p.Release() // wait4 knows of stops as well, which p.Wait does not
}

func (j *Job) wait() {
	defer close(j.changes)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(j.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // somebody else has waited for it: nobody knows its status
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

// Changes delivers each change of the command, its end last. They have to be
// read.
func (j *Job) Changes() <-chan Change { return j.changes }

// PID is the process id of the command, and the id of its group.
func (j *Job) PID() int { return j.pid }

// Signal sends a signal to the whole group. That nobody is left there is no
// error.
func (j *Job) Signal(s syscall.Signal) error {
	if err := syscall.Kill(-j.pid, s); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Empty reports whether nobody in the group is alive, of what the command has
// started and has stayed in its group. It is for when the command itself has
// ended.
func (j *Job) Empty() bool {
	// Orphans become children of this program where it is the first process of a
	// container, and then nobody else waits for them.
	for {
		pid, err := unix.Wait4(-j.pid, nil, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			break
		}
	}
	err := syscall.Kill(-j.pid, 0)
	return errors.Is(err, syscall.ESRCH) || onlyZombies(j.pid)
}
