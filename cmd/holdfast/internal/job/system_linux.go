package job

import (
	"bytes"
	"iter"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process describes a process by /proc.
type process struct {
	pid, parent, group int
	zombie             bool
}

// processes yields all visible processes.
func processes() iter.Seq[process] {
	return func(yield func(process) bool) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
			if err != nil {
				continue
			}
			// pid (name) state ppid pgrp ... num_threads ...; the name may contain anything.
			const parentField, groupField, threadsField = 1, 2, 17
			fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
			if len(fields) <= threadsField {
				continue
			}
			parent, _ := strconv.Atoi(string(fields[parentField]))
			group, _ := strconv.Atoi(string(fields[groupField]))
			threads, _ := strconv.Atoi(string(fields[threadsField]))
			// A process whose first thread has ended (pthread_exit) is shown as a zombie while its other threads go on.
			zombie := (fields[0][0] == 'Z' || fields[0][0] == 'X') && threads <= 1
			if !yield(process{pid, parent, group, zombie}) {
				return
			}
		}
	}
}

// onlyZombies reports whether all members of a group are zombies: a parent that never waits for them must not keep a lock. It is false for
// a group that /proc does not show.
func onlyZombies(group int) bool {
	seen := false
	for p := range processes() {
		if p.group == group {
			if !p.zombie {
				return false
			}
			seen = true
		}
	}
	return seen
}

// adopts reports whether this program adopts orphans, as the first process of a container does.
var adopts = sync.OnceValue(func() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper != 0
})

// Reap waits for dead orphans. Call it on the goroutine that starts the job and its guard, which have their own waiters.
func (j *Job) Reap(g *Guard) {
	if !adopts() {
		return
	}
	for p := range processes() {
		if p.zombie && p.parent == os.Getpid() && p.pid != j.pid && (g == nil || p.pid != g.pid) {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
