package zkserver

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

// process is one running child.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   io.ReadCloser
	done  chan struct{} // closed when the child has been reaped
	err   error         // how it ended; valid after done
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

// startProcess starts a child that dies with this process, its output appended to the log. With piped, its standard input
// and output are pipes for a line protocol instead.
func startProcess(logPath string, piped bool, name string, args ...string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stderr, p.cmd.Stdout = log, log
	p.cmd.SysProcAttr = sysProcAttr()
	var ours, theirs *os.File
	if piped {
		if p.stdin, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		// Not StdoutPipe: Wait would close it under the reader.
		if ours, theirs, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer theirs.Close()
		p.cmd.Stdout, p.out = theirs, ours
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

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(sig syscall.Signal) error {
	select {
	case <-p.done:
		return fmt.Errorf("%v: process %d has ended: %v", sig, p.pid(), p.err)
	default:
		return p.cmd.Process.Signal(sig)
	}
}

// stop ends the child in an orderly way if it does so in time, and kills it otherwise. It returns when the child is gone.
func (p *process) stop(ctx context.Context, patience time.Duration) {
	// A paused process takes no other signal than SIGCONT and SIGKILL. Errors mean that it has gone already.
	_ = p.signal(syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	p.kill()
}

func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}

// awaitState waits until the kernel shows the process as paused or as running: SIGSTOP takes effect a moment after kill(2)
// has returned. Where there is no /proc it does not wait.
func (p *process) awaitState(paused bool) {
	for range 1000 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid()) + "/stat")
		if err != nil {
			return
		}
		// The state follows the command's name, which stands in parentheses and may contain anything.
		rest := stat[bytes.LastIndexByte(stat, ')')+1:]
		if (len(rest) > 1 && rest[1] == 'T') == paused {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
