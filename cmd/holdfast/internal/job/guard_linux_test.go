package job

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/signaltest"
)

// parentVariable makes this test binary a program that runs a job under a guard,
// and says for how long the job may live without it.
const parentVariable = "JOB_TEST_PARENT"

func TestMain(m *testing.M) {
	BeGuard()
	if text := os.Getenv(parentVariable); text != "" {
		if err := parent(text); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	signaltest.Default()
	os.Exit(m.Run())
}

// parent starts a job of two processes, prints their ids and that of its guard, and
// waits for what happens to it. That which comes to its standard input is obeyed.
func parent(text string) error {
	limit, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	g, err := StartGuard("a test")
	if err != nil {
		return err
	}
	script := Command{Path: "/bin/sh", Args: []string{"sh", "-c", `sleep 1000 & echo $$ $!; wait`}, Env: os.Environ()}
	if _, err := Start(script, g, time.Now().Add(limit)); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	g.Dismiss()
	return nil
}

// guarded starts such a program, and returns it with the processes of its job.
func guarded(t *testing.T, limit string) (program *exec.Cmd, job [2]int, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentVariable+"="+limit)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(stdout)
	for _, want := range []string{"job", "ready"} { // in either order
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v: %q", want, err, line)
		}
		if strings.TrimSpace(line) != "ready" {
			if _, err := fmt.Sscan(line, &job[0], &job[1]); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	}
	t.Cleanup(func() { _ = syscall.Kill(-job[0], syscall.SIGKILL) })
	return cmd, job, func() { _, _ = stdin.Write([]byte("\n")) }
}

// state is the kernel's letter for what a process does; "" if there is none.
func state(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
}

// dead reports whether a process can do nothing any more.
func dead(pid int) bool {
	s := state(pid)
	return s == "" || s == "Z" || s == "X"
}

// becomes waits for something, and fails the test if it never comes.
func becomes(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// die waits for the end of processes.
func die(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		becomes(t, fmt.Sprintf("process %d is dead", pid), func() bool { return dead(pid) })
	}
}

// TestGuardOutlivesProgram checks that all of a job is killed when the program that
// runs it is, and not only what that has started itself.
func TestGuardOutlivesProgram(t *testing.T) {
	t.Parallel()
	program, job, _ := guarded(t, "1h")
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	die(t, job[:]...)
}

// TestGuardKeepsTime checks that a job is killed in time when the program that
// runs it is stopped.
func TestGuardKeepsTime(t *testing.T) {
	t.Parallel()
	program, job, _ := guarded(t, "1s")
	if err := program.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	becomes(t, "the program is stopped", func() bool { return state(program.Process.Pid) == "T" })
	die(t, job[:]...)
}

// TestGuardDismissed checks that a guard which is not wanted any more does nothing.
func TestGuardDismissed(t *testing.T) {
	t.Parallel()
	program, job, end := guarded(t, "1h")
	end()
	_ = program.Wait()
	die(t, job[0]) // by the kernel, with its parent
	time.Sleep(200 * time.Millisecond)
	if dead(job[1]) {
		t.Error("the rest of the job is dead: the guard has killed it")
	}
}

// TestGuardOrders checks that what a guard has been told counts before the clock,
// however much of it there is: after a stop, it must not go by an old deadline.
func TestGuardOrders(t *testing.T) {
	t.Parallel()
	j, _ := start(t, "exec sleep 1000")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	group := int64(j.PID())
	for range 100 {
		if _, err := w.Write(orders{group, 1}.bytes()); err != nil { // a second after the machine was started
			t.Fatal(err)
		}
	}
	for _, o := range []orders{{group, sharedClock(time.Now().Add(time.Hour))}, dismissed} {
		if _, err := w.Write(o.bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := guard(int(r.Fd())); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if dead(j.PID()) {
		t.Fatal("the job is dead: the guard went by an old deadline")
	}
	if _, err := w.Write(orders{group, sharedClock(time.Now().Add(time.Hour))}.bytes()); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := guard(int(r.Fd())); err == nil {
		t.Error("the end of the program was not noticed")
	}
	if c := next(t, j); c.Status.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want it killed", c)
	}
}

// TestSharedClock tests the arithmetic of the deadline: what is past is past, and
// what never comes is none.
func TestSharedClock(t *testing.T) {
	now := time.Now()
	soon := sharedClock(now.Add(time.Second))
	for _, moment := range []time.Time{{}, now.Add(-1000 * time.Hour), now} {
		if at := sharedClock(moment); at < 1 || at >= soon {
			t.Errorf("sharedClock(%v) is %d; in a second it is %d", moment, at, soon)
		}
	}
	for _, d := range []time.Duration{1<<63 - 1, 1 << 62} {
		if at := sharedClock(now.Add(d)); at != 0 {
			t.Errorf("in %v it is %d, want none", d, at)
		}
	}
}

// init keeps the main thread for the main function: that thread never ends, which
// TestStartingThread would take for a cure.
func init() { runtime.LockOSThread() }

// TestStartingThread checks that the thread which has started a command lives as
// long as that: otherwise the kernel takes its end for that of the program. All
// processors are busy here, so that goroutines change threads whenever they may, and
// threads end all the time.
func TestStartingThread(t *testing.T) {
	const stops, threads = 10, 20
	j, _ := start(t, fmt.Sprintf(`n=0; while [ $n -lt %d ]; do kill -STOP $$; n=$((n+1)); done; exit 3`, stops))
	var enough atomic.Bool
	defer enough.Store(true)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for !enough.Load() {
			}
		}()
	}
	for range stops {
		if c := next(t, j); c.Stopped == 0 {
			t.Fatalf("%+v: the command did not get to its end", c)
		}
		var ready, ended sync.WaitGroup
		ready.Add(threads)
		for range threads {
			ended.Go(func() {
				runtime.LockOSThread() // for good: the thread ends with the goroutine
				ready.Done()
				ready.Wait()
			})
		}
		ended.Wait()
		if err := j.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	if c := next(t, j); c.Status.Code != 3 || c.Status.Signal != 0 {
		t.Errorf("%+v, want its end with 3", c)
	}
}
