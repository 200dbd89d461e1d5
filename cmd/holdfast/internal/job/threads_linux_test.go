package job

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// threadsVariable makes the test a program whose first thread ends, see TestMain.
const threadsVariable = "JOB_TEST_THREADS"

// loseFirstThread ends the calling thread, which is the first, as pthread_exit does in main. Another goes on.
func loseFirstThread() {
	go func() {
		time.Sleep(time.Hour)
		os.Exit(0)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// TestGroupWithoutAFirstThread checks that a process is alive that has lost its first thread, though the kernel shows it as a zombie.
func TestGroupWithoutAFirstThread(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := start(t, fmt.Sprintf("%s=1 '%s' & exit 3", threadsVariable, exe)) // it leaves that behind
	if c := next(t, j); c.Status.Code != 3 {
		t.Fatalf("%+v", c)
	}
	await(t, "it does not lose its thread", func() bool {
		for p := range processes() {
			if p.group == j.PID() && p.pid != j.PID() {
				stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
				return strings.Contains(string(stat), ") Z ")
			}
		}
		return false
	})
	if j.Empty() {
		t.Error("a process that runs is taken for dead")
	}
	if err := j.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "it does not die", j.Empty)
}

// await waits until something is so.
func await(t *testing.T, otherwise string, so func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal(otherwise)
		}
	}
}
