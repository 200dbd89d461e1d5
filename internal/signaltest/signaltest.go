// Package signaltest keeps tests from depending on who has started them.
package signaltest

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// Default has the processes that this one starts begin with the default action of
// every signal, those included that this one was made to ignore: nohup(1) does that,
// and shells without job control to whatever they start in the background. Otherwise
// those processes would ignore them as well, and wait for ever for what a test sends.
// This process goes on ignoring them. Call it first in TestMain.
func Default() {
	mask := ignored()
	for s := syscall.Signal(1); s < 32; s++ {
		if mask&(1<<(s-1)) != 0 {
			signal.Notify(make(chan os.Signal, 1), s) // what is handled is not inherited
		}
	}
}

// ignored is the set of signals that this process ignores, as Linux tells it: Go
// itself does not know of all. Elsewhere it is empty.
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
