package job

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that has to happen.
const patience = 30 * time.Second

// start starts a script, which gets TMP for its files.
func start(t *testing.T, script string) (*Job, string) {
	t.Helper()
	dir := t.TempDir()
	j, err := Start(Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: append(os.Environ(), "DIR="+dir)}, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Signal(syscall.SIGKILL) })
	return j, dir
}

// next returns the next change.
func next(t *testing.T, j *Job) Change {
	t.Helper()
	select {
	case c, ok := <-j.Changes():
		if !ok {
			t.Fatal("no more changes")
		}
		return c
	case <-time.After(patience):
		t.Fatal("no change")
	}
	panic("unreachable")
}

// appears waits for a file.
func appears(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("never: %s", path)
		}
	}
}

// TestStatus tests how an end is told.
func TestStatus(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -9 $$": 137, "kill -15 $$": 143} {
		j, _ := start(t, script)
		c := next(t, j)
		if c.Stopped != 0 || c.Status.ExitCode() != want {
			t.Errorf("%s: %+v, want %d", script, c, want)
		}
		if _, ok := <-j.Changes(); ok {
			t.Errorf("%s: there are changes after the end", script)
		}
		if !j.Empty() {
			t.Errorf("%s: somebody is left", script)
		}
		if err := j.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("%s: a signal to nobody: %v", script, err)
		}
	}
}

// TestStops checks that stops are told, and that a stopped command goes on.
func TestStops(t *testing.T) {
	t.Parallel()
	j, _ := start(t, "kill -STOP $$; exit 5")
	if c := next(t, j); c.Stopped != syscall.SIGSTOP {
		t.Fatalf("%+v, want it stopped", c)
	}
	if err := j.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if c := next(t, j); c.Status.Code != 5 {
		t.Errorf("%+v, want its end with 5", c)
	}
}

// TestGroup checks that the group is a thing of its own: it outlives the command,
// gets signals as a whole, and is empty when the last of it is dead.
func TestGroup(t *testing.T) {
	t.Parallel()
	j, dir := start(t, `(trap "" TERM; : >"$DIR/up"; exec sleep 1000) & until [ -e "$DIR/up" ]; do sleep 0.01; done`)
	appears(t, filepath.Join(dir, "up"))
	if c := next(t, j); c.Status.ExitCode() != 0 {
		t.Fatalf("%+v", c)
	}
	if group, err := syscall.Getpgid(0); err != nil || group == j.PID() {
		t.Errorf("the group is the test's own, %d: %v", group, err)
	}
	if err := j.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // it can only be found alive too late, never too early
	if j.Empty() {
		t.Fatal("the group is empty, although one of it does not heed SIGTERM")
	}
	if err := j.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); !j.Empty(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the group never gets empty")
		}
	}
}

// TestStartFails tests the errors of commands that cannot be run, and that a
// script without "#!" can.
func TestStartFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, test := range map[string]struct {
		content string
		mode    os.FileMode
		want    error
		status  int
	}{
		"no interpreter": {"#!/no/such/file\n", 0o755, ErrNotFound, 0},
		"plain script":   {"exit 6\n", 0o755, nil, 6},
		"no program":     {"exit 6\n", 0o644, ErrNotExecutable, 0},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(test.content), test.mode); err != nil {
			t.Fatal(err)
		}
		j, err := Start(Command{Path: path, Args: []string{path}}, nil, time.Time{})
		if test.want != nil {
			if err == nil || !errors.Is(Explain(err), test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c := next(t, j); c.Status.Code != test.status {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestFind tests the search for a command.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"program": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "/no/such/directory:"+dir)
	for name, want := range map[string]error{
		"program": nil, dir + "/program": nil, "text": ErrNotExecutable, dir + "/text": ErrNotExecutable, dir: ErrNotExecutable,
		"other": ErrNotFound, dir + "/other": ErrNotFound, dir + "/text/x": ErrNotFound, "": ErrNotFound,
	} {
		path, err := Find(name)
		if !errors.Is(err, want) || (want == nil) != (path == filepath.Join(dir, "program")) {
			t.Errorf("Find(%q): %q, %v; want %v", name, path, err, want)
		}
	}
}
