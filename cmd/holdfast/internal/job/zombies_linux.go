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

// process is what /proc tells of one.
type process struct {
	pid, parent, group int
	zombie             bool
}

// processes yields all that can be seen.
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
			// pid (name) state ppid pgrp ...; the name may contain anything.
			fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
			if len(fields) < 3 {
				continue
			}
			parent, _ := strconv.Atoi(string(fields[1]))
			group, _ := strconv.Atoi(string(fields[2]))
			if state := fields[0][0]; !yield(process{pid, parent, group, state == 'Z' || state == 'X'}) {
				return
			}
		}
	}
}

// onlyZombies reports whether all members of a group are dead, and only wait to
// be waited for: a parent that never does so must not keep a lock. What /proc
// does not show counts as alive only if nothing else of the group is seen.
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

// adopts reports whether orphans become children of this program, as they do where
// it is the first process of a container.
var adopts = sync.OnceValue(func() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper != 0
})

// Reap waits for the orphans that have died, which nobody else does. It is for the
// goroutine that starts the job and its guard, which have waiters of their own.
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
