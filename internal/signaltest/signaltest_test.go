//go:build linux

package signaltest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const childVariable = "SIGNALTEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "default":
		Default()
		fallthrough
	case "as it is":
		_ = syscall.Kill(os.Getpid(), syscall.SIGHUP) // which it goes on ignoring
		cmd := exec.Command("grep", "SigIgn", "/proc/self/status")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Run() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestDefault checks that the children of a test do not ignore the signals that the test
// inherited as ignored (hazard C6).
func TestDefault(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// From 32 on are the C library's own signals, which make leaves ignored.
	const ours = 1<<31 - 1
	for mode, want := range map[string]uint64{
		"as it is": 0x300003, // SIGTTIN and SIGTTOU, SIGINT and SIGHUP; the rest is Go's doing
		"default":  0,
	} {
		cmd := exec.Command("sh", "-c", `trap "" HUP INT QUIT TTIN TTOU; exec "$0"`, exe)
		cmd.Env = append(os.Environ(), childVariable+"="+mode)
		out, err := cmd.CombinedOutput()
		_, text, _ := strings.Cut(string(out), "SigIgn:")
		mask, bad := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil || bad != nil || mask&ours != want {
			t.Errorf("%s: %v, %q; want %#x", mode, err, out, want)
		}
	}
}
