package faultproxy

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// sleeper waits for a point in time more precisely than a runtime timer: an
// idle Go program waits in epoll_wait, whose timeout is in milliseconds, so a
// timer due in 0.4 ms can fire 0.6 ms late. A timerfd wakes the same epoll_wait
// on time, and blocks no thread.
type sleeper struct {
	mu      sync.Mutex
	file    *os.File
	stopped bool
}

const (
	clockMonotonic = 1
	tfdFlags       = syscall.O_NONBLOCK | syscall.O_CLOEXEC
)

// until returns true when t has come, or false when ctx has ended and stop was
// called.
func (s *sleeper) until(ctx context.Context, t time.Time) bool {
	for {
		d := time.Until(t)
		if d <= 0 {
			return ctx.Err() == nil
		}
		file, err := s.open()
		if err != nil || !waitTimer(file, d) {
			return wait(ctx, t)
		}
	}
}

// stop wakes until, and frees the descriptor.
func (s *sleeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.file != nil {
		_ = s.file.Close()
	}
}

// open creates the descriptor on first use: most connections have no latency.
func (s *sleeper) open() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, os.ErrClosed
	}
	if s.file != nil {
		return s.file, nil
	}
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, tfdFlags, 0)
	if errno != 0 {
		return nil, errno
	}
	s.file = os.NewFile(fd, "timerfd")
	return s.file, nil
}

// waitTimer sleeps for d; false means that the descriptor is of no use.
func waitTimer(file *os.File, d time.Duration) bool {
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	spec := [2]syscall.Timespec{1: syscall.NsecToTimespec(int64(d))} // interval, value
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	})
	if err != nil || errno != 0 {
		return false
	}
	var expirations [8]byte
	_, err = file.Read(expirations[:])
	return err == nil
}
