package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Process is one running child.
type Process struct {
	// Stdin and Stdout are the pipes of a child that was started with piped.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// spawn runs f on one operating-system thread that never ends. Linux kills a child with a parent-death signal when the
// thread that started it ends, not the process, so children must not be started from an ordinary goroutine's thread.
var spawn = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Start starts a child that dies with this process, its output appended to the log. With piped, its standard input
// and output are pipes for a line protocol instead.
func Start(logPath string, piped bool, name string, args ...string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &Process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stderr, p.cmd.Stdout = log, log
	p.cmd.SysProcAttr = Attr()
	var ours, theirs *os.File
	if piped {
		if p.Stdin, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		// Not StdoutPipe: Wait would close it under the reader.
		if ours, theirs, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer theirs.Close()
		p.cmd.Stdout, p.Stdout = theirs, ours
	}
	started := make(chan error)
	spawn() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		if ours != nil {
			ours.Close()
		}
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		if p.err == nil {
			p.err = errors.New("exit status 0")
		}
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended. Call it only after Done; it is never nil.
func (p *Process) Err() error { return p.err }

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends the child a signal. It fails when the child has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	select {
	case <-p.done:
		return fmt.Errorf("%v: process %d has ended: %v", sig, p.PID(), p.err)
	default:
		return p.cmd.Process.Signal(sig)
	}
}

// Await waits until answers returns nil. It gives up when the child has ended or ctx is done.
func (p *Process) Await(ctx context.Context, answers func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := answers(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("ended while starting: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("%w: last answer: %w", context.Cause(ctx), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop asks the child to end, and kills it if it does not in time. It returns when the child is gone.
func (p *Process) Stop(ctx context.Context, patience time.Duration) {
	// A paused process reacts only to SIGCONT and SIGKILL. An error means that it has already ended.
	_ = p.Signal(syscall.SIGTERM)
	_ = p.Signal(syscall.SIGCONT)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	p.Kill()
}

// Kill ends the child with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Tail returns the end of a log, for failure messages.
func Tail(logPath string) string {
	b, err := os.ReadFile(logPath)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}

// Pause stops the child with SIGSTOP, and returns when it has stopped: its sockets stay open and take bytes, but it answers nothing.
func (p *Process) Pause() error { return p.suspend(syscall.SIGSTOP, true) }

// Resume continues a paused child. The child then serves requests that arrived meanwhile, even if their clients have given up.
func (p *Process) Resume() error { return p.suspend(syscall.SIGCONT, false) }

// suspend sends a signal, and waits until the kernel shows the child as paused or as running: SIGSTOP takes effect a moment after kill(2)
// has returned. Without /proc it does not wait.
func (p *Process) suspend(sig syscall.Signal, paused bool) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	for range 1000 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/stat")
		if err != nil {
			break
		}
		// The state follows the command's name, which stands in parentheses and may contain anything.
		rest := stat[bytes.LastIndexByte(stat, ')')+1:]
		if (len(rest) > 1 && rest[1] == 'T') == paused {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
