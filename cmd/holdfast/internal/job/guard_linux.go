package job

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardName is the name under which this program starts itself as a guard, which ps(1) shows. guardComm is its short name in the kernel,
// which "pkill holdfast" does not match.
const (
	guardName = "holdfast guard"
	guardComm = "hf-guard"
)

// orderSize is the size of orders in the pipe; writes of it are atomic.
const orderSize = 16

// A Guard is a process that kills a job when this program cannot: because it was killed, or stopped for longer than the job may run. A nil
// *Guard is valid and does nothing.
type Guard struct {
	cmd    *exec.Cmd
	pid    int
	pipe   *os.File  // for orders
	until  time.Time // of the last orders
	ended  chan struct{}
	failed error // valid once it has ended
}

// orders are the whole knowledge of a guard.
type orders struct {
	group    int64 // to be killed
	deadline int64 // by sharedClock; 0 for none: only when the program is gone
}

// dismissed tells the guard to exit.
var dismissed = orders{}

// StartGuard starts a guard without orders, with a name for ps(1). The guard is this program again, whose main function calls [BeGuard]. It
// has its own session, so signals from the terminal or a shell do not reach it, and none of this program's files open.
func StartGuard(of string) (*Guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{guardName, "of", of}, Dir: "/",
		Env:         []string{"GOMAXPROCS=1"}, // and no secrets
		Stdin:       r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, err
	}
	g := &Guard{cmd: cmd, pid: cmd.Process.Pid, pipe: w, ended: make(chan struct{}), failed: errors.New("it was stopped")}
	go func() {
		defer close(g.ended)
		if stopped(g.pid) { // then it is useless
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		} else {
			g.failed = cmd.Wait()
		}
	}()
	return g, nil
}

func (g *Guard) send(o orders) {
	// While the guard is stopped, the pipe may fill up. When it continues, it must not act on old orders, so it is killed if one does not
	// fit. A time limit would not show that: it may pass before the first try.
	pipe, err := g.pipe.SyscallConn()
	if err == nil {
		failed := pipe.Write(func(fd uintptr) bool {
			_, err = unix.Write(int(fd), o.bytes())
			return true // one try is enough
		})
		err = cmp.Or(failed, err)
	}
	if err != nil {
		_ = g.cmd.Process.Kill()
	}
}

// Watch tells the guard to kill a job at a moment, or as soon as this program is gone. Call it again whenever the moment may have moved.
func (g *Guard) Watch(j *Job, until time.Time) {
	if g != nil && !until.Equal(g.until) {
		g.until = until
		g.send(orders{group: int64(j.pid), deadline: sharedClock(until)})
	}
}

// Ended returns a channel that closes when the guard has ended for any reason; nil if there is no guard. A guard that was stopped is
// killed.
func (g *Guard) Ended() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.ended
}

// Failed returns the error of a guard that has ended; nil if it has killed the job.
func (g *Guard) Failed() error { return g.failed }

// Again replaces a guard that has ended.
func (g *Guard) Again(j *Job) (*Guard, error) {
	another, err := StartGuard(g.cmd.Args[2])
	if err != nil {
		return g, err
	}
	_ = g.pipe.Close()
	another.Watch(j, g.until)
	return another, nil
}

// Dismiss ends the guard, once the job has no more processes.
func (g *Guard) Dismiss() {
	if g != nil {
		g.send(dismissed)
		_ = g.pipe.Close()
	}
}

// stopped waits until a child has ended or was stopped. It leaves the state for another wait.
func stopped(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && info.Code == cldStopped
		}
	}
}

// cldStopped is CLD_STOPPED of waitid(2).
const cldStopped = 5

// BeGuard does the work of a guard and exits, if this process is one. main calls it first.
func BeGuard() {
	if len(os.Args) != 3 || os.Args[0] != guardName {
		return
	}
	_ = os.WriteFile("/proc/self/comm", []byte(guardComm), 0)
	// No signal but SIGKILL may end it. SIGCONT and SIGCHLD have no effect anyway.
	signal.Ignore()
	if err := guard(int(os.Stdin.Fd())); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// guard obeys the orders from a pipe. Orders that have arrived take precedence over the clock: after a stop of the guard, the deadline that
// it knows may be old.
func guard(orderPipe int) error {
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		timer = -1 // poll ignores it; the guard then only notices the end of its parent
	}
	var present orders
	buffer := make([]byte, 64*orderSize)
	for {
		fds := []unix.PollFd{{Fd: int32(orderPipe), Events: unix.POLLIN}, {Fd: int32(timer), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return err
		}
		if fds[0].Revents == 0 { // the timer went off
			present.kill()
			return nil
		}
		n, err := unix.Read(orderPipe, buffer)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return err
		case n < orderSize: // the program is gone
			present.kill()
			return io.EOF
		}
		present = parse(buffer[n-orderSize : n])
		if present == dismissed {
			return nil
		}
		if timer >= 0 {
			at := unix.ItimerSpec{Value: unix.NsecToTimespec(present.deadline)} // zero: never
			_ = unix.TimerfdSettime(timer, unix.TFD_TIMER_ABSTIME, &at, nil)
		}
	}
}

func (o orders) bytes() []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(o.group))
	return binary.NativeEndian.AppendUint64(b, uint64(o.deadline))
}

func parse(from []byte) orders {
	return orders{int64(binary.NativeEndian.Uint64(from)), int64(binary.NativeEndian.Uint64(from[8:]))}
}

func (o orders) kill() {
	if o.group > 1 {
		_ = syscall.Kill(-int(o.group), syscall.SIGKILL)
	}
}

// sharedClock converts a moment to a clock that all processes share and that runs on while the machine is asleep. It returns 0 for a moment
// too far away.
func sharedClock(t time.Time) int64 {
	const never = 10 * 365 * 24 * time.Hour
	var now unix.Timespec
	// Read this clock first: a delay in between then makes the moment earlier, not later.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	left := time.Until(t)
	if left > never {
		return 0
	}
	return max(1, now.Nano()+int64(left))
}
