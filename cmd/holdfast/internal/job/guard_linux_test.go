package job

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/signaltest"
)

func TestMain(m *testing.M) {
	if os.Getenv(threadsVariable) != "" {
		loseFirstThread()
	}
	signaltest.Default()
	os.Exit(m.Run())
}

// start runs a shell script as an unguarded job.
func start(t *testing.T, script string) *Job {
	t.Helper()
	j, err := Start(Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ()}, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Signal(syscall.SIGKILL) })
	return j
}

// next returns the next change of a job.
func next(t *testing.T, j *Job) Change {
	t.Helper()
	select {
	case c := <-j.Changes():
		return c
	case <-time.After(time.Minute):
		t.Fatal("no change")
	}
	panic("unreachable")
}

// TestGuardOrders checks that a guard reads all its orders before it looks at the clock,
// however many there are: after a stop, it must not act on an old deadline.
func TestGuardOrders(t *testing.T) {
	t.Parallel()
	j := start(t, "exec sleep 1000")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	send := func(o orders) {
		t.Helper()
		if _, err := w.Write(o.bytes()); err != nil {
			t.Fatal(err)
		}
	}
	group := int64(j.PID())
	inAnHour := orders{group, sharedClock(time.Now().Add(time.Hour))}
	for range 100 {
		send(orders{group, 1}) // long past: just after the machine was started
	}
	send(inAnHour)
	send(dismissed)
	if err := guard(int(r.Fd())); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-j.Changes():
		t.Fatalf("the guard acted on an old deadline: %+v", c)
	case <-time.After(50 * time.Millisecond):
	}
	send(inAnHour)
	_ = w.Close()
	if err := guard(int(r.Fd())); err == nil {
		t.Error("the guard did not notice the end of the program")
	}
	if c := next(t, j); c.Status.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want it killed", c)
	}
}

// TestGuardOnABusyMachine checks that a guard gets its orders however late this program comes to write them, and that
// one is killed that does not read its orders.
func TestGuardOnABusyMachine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	g := &Guard{cmd: exec.Command("sleep", "1000"), pipe: w}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.cmd.Wait() }()
	defer func() { _ = g.cmd.Process.Kill() }()
	var idle atomic.Bool
	for range 8 * runtime.NumCPU() {
		go func() {
			for !idle.Load() {
			}
		}()
	}
	order := make([]byte, orderSize)
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); { // it has to wait for a processor at any point
		g.send(orders{1, 1})
		if _, err := io.ReadFull(r, order); err != nil {
			idle.Store(true)
			t.Fatalf("an order does not arrive: %v", err)
		}
	}
	idle.Store(true)
	select {
	case err := <-ended:
		t.Fatalf("the guard is gone: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for range 1<<16/orderSize + 1 { // more than a pipe takes
		g.send(orders{1, 1})
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a guard that reads nothing is not killed")
	}
}

// TestSharedClock checks that past moments are due at once and unreachable ones never.
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

// init keeps the main thread, which never ends, away from tests: TestStartingThread would
// pass on it without the cure.
func init() { runtime.LockOSThread() }

// TestStartingThread checks that the thread that starts a command lives as long as the
// command: the kernel kills the command when that thread ends. Here all processors are
// busy, so goroutines change threads often, and threads end all the time.
func TestStartingThread(t *testing.T) {
	const stops, threads = 10, 20
	j := start(t, fmt.Sprintf(`n=0; while [ $n -lt %d ]; do kill -STOP $$; n=$((n+1)); done; exit 3`, stops))
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
		t.Errorf("%+v, want exit status 3", c)
	}
}
