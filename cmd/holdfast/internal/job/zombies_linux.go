package job

import (
	"bytes"
	"os"
	"strconv"
)

// onlyZombies reports whether all members of a group are dead, and only wait to
// be waited for: a parent that never does so must not keep a lock. What /proc
// does not show counts as alive only if nothing else of the group is seen.
func onlyZombies(group int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	seen := false
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid pgrp ...; the name may contain anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if state := fields[0][0]; state != 'Z' && state != 'X' {
			return false
		}
		seen = true
	}
	return seen
}
