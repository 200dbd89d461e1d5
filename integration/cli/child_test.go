package cli_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// childVariable makes this test binary a command for the tool to run, by name.
const childVariable = "HOLDFAST_CLI_CHILD"

var children = map[string]func(){"notes signals": noteSignals, "pair of stamps": stampPair, "stamps": stamp, "adopts": adopt}

// testChild returns the setting and the command with which the tool runs one of them.
func testChild(t *testing.T, name string) (setting, command string) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return childVariable + "=" + name, path
}

// noteSignals records the signals that it gets until a SIGPIPE. Unlike a shell, it has no
// child processes that get them too.
func noteSignals() {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals)
	note("pid", fmt.Sprintln(os.Getpid()))
	for s := range signals {
		switch s {
		case syscall.SIGPIPE:
			os.Exit(42)
		case syscall.SIGURG: // Go's own
		default:
			note("signals", names[s.(syscall.Signal)]+"\n")
		}
	}
}

var names = map[syscall.Signal]string{
	syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT",
	syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2", syscall.SIGALRM: "ALRM", syscall.SIGWINCH: "WINCH",
	syscall.SIGTSTP: "TSTP", syscall.SIGCONT: "CONT",
}

// note appends to a file in the tool's directory.
func note(name, text string) {
	f, err := os.OpenFile(filepath.Join(os.Getenv("DIR"), name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer f.Close()
	fmt.Fprint(f, text)
}

// adopt becomes the program in its arguments, and orphans become its children, as with
// the first process of a container.
func adopt() {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil {
		_ = os.Unsetenv(childVariable)
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
