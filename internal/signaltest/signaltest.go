// Package signaltest makes tests independent of how they were started.
package signaltest

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// Default makes child processes start with the default action of every signal, even of
// those that this process inherited as ignored: nohup(1) does that, and shells without
// job control do it to background processes. Otherwise the children would ignore these
// signals too, and a test would wait for ever for their effect. This process goes on
// ignoring them. Call it first in TestMain.
func Default() {
	mask := ignored()
	for s := syscall.Signal(1); s < 32; s++ {
		if mask&(1<<(s-1)) != 0 {
			signal.Notify(make(chan os.Signal, 1), s) // what is handled is not inherited
		}
	}
}

// ignored is the set of signals that this process ignores, as Linux reports it: Go does
// not know all. Elsewhere it is empty.
func ignored() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "SigIgn:"); found {
			mask, _ := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return mask
		}
	}
	return 0
}
