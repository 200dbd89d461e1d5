package job

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orderSize is that of orders in the pipe: a write of it is never torn.
const orderSize = 16

// StartGuard starts a guard, which has nothing to do yet, under the name of what it
// is for. It is this program itself once more, in a session of its own, so that what a terminal or a shell
// sends to this program does not reach it. It keeps nothing open that this program
// has open. Its main function calls [BeGuard].
func StartGuard(of string) (*Guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	defer null.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{guardName, "of", of}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"GOMAXPROCS=1"}, // and no secrets
		Files: []*os.File{r, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	ended := make(chan struct{})
	failed := errors.New("it was stopped")
	go func() {
		defer close(ended)
		asleep := stopped(p.Pid)
		if asleep { // it would miss what it is for
			_ = p.Kill()
		}
		switch state, err := p.Wait(); {
		case asleep:
		case err != nil:
			failed = err
		case state.Success():
			failed = nil
		default:
			failed = errors.New(state.String())
		}
	}()
	return &Guard{
		of:  of,
		pid: p.Pid,
		send: func(o orders) {
			// Where somebody has stopped the guard, the pipe gets full one day. If it
			// went on then, it would go by what it was told long ago.
			_ = w.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := w.Write(o.bytes()); err != nil {
				_ = p.Kill()
			}
		},
		close:  func() { _ = w.Close() },
		ended:  ended,
		failed: func() error { return failed },
	}, nil
}

// stopped waits until a child has ended, or was stopped. Either can still be waited
// for afterwards.
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

// BeGuard does the work of a guard and ends the process, if the process is one.
// It comes first in main.
func BeGuard() {
	if len(os.Args) != 3 || os.Args[0] != guardName {
		return
	}
	_ = os.WriteFile("/proc/self/comm", []byte(guardComm), 0)
	// It ends when it is dismissed or has done its work, and of nothing else that
	// can be helped. SIGCONT and SIGCHLD have no effect anyway.
	signal.Ignore()
	if err := guard(int(os.Stdin.Fd())); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// guard obeys the orders that come through a pipe. Orders that have arrived always
// count before the clock does: after a stop of the guard itself, the deadline that
// it knows may be an old one.
func guard(orderPipe int) error {
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		timer = -1 // which poll passes over: then it is only for the end of its parent
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
		if fds[0].Revents == 0 { // it is the timer
			present.kill()
			return nil
		}
		n, err := unix.Read(orderPipe, buffer)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return err
		case n < orderSize: // who gave them is gone
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

// sharedClock tells a moment by a clock that all processes see, and that goes on
// while the machine is asleep. What is too far away to be reached is no moment.
func sharedClock(t time.Time) int64 {
	const never = 10 * 365 * 24 * time.Hour
	var now unix.Timespec
	// The clock is read first: whatever comes between makes the moment an earlier one.
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	left := time.Until(t)
	if left > never {
		return 0
	}
	return max(1, now.Nano()+int64(left))
}
