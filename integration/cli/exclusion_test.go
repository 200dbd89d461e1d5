package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
)

// stampPair is a command of two processes in one group that ignore all signals they can,
// and stamp a file each millisecond.
func stampPair() {
	again := exec.Command("/proc/self/exe")
	again.Env = append(os.Environ(), childVariable+"=stamps")
	if err := again.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stamp()
}

func stamp() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	for {
		note("stamps", fmt.Sprintf("%d %d %s\n", time.Now().UnixNano(), os.Getpid(), os.Getenv("HOLDFAST_TOKEN")))
		time.Sleep(time.Millisecond)
	}
}

// stamped summarises the stamps of a command.
type stamped struct {
	first, last time.Time
	processes   []int
	token       holdfast.Token
}

func (p *tool) stamped() stamped {
	p.t.Helper()
	var s stamped
	for line := range strings.Lines(read(p.file("stamps"))) {
		var at int64
		var pid int
		if !strings.HasSuffix(line, "\n") {
			break // the last one may be incomplete
		}
		if _, err := fmt.Sscan(line, &at, &pid, &s.token); err != nil {
			p.t.Fatalf("%q: %v", line, err)
		}
		moment := time.Unix(0, at)
		if s.first.IsZero() || moment.Before(s.first) {
			s.first = moment
		}
		if moment.After(s.last) {
			s.last = moment
		}
		if !slices.Contains(s.processes, pid) {
			s.processes = append(s.processes, pid)
		}
	}
	return s
}

// TestRunNeverTwo tests the purpose of run with two of them, whose commands record when
// they were alive: whatever happens to the first, the second's command does not begin
// before all processes of the first's are dead. After a break, which ends the lock
// without asking its holder, only tokens exclude.
func TestRunNeverTwo(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for name, trouble := range map[string]func(t *testing.T, e *engine, p *tool, key string){
			"cut off": func(_ *testing.T, e *engine, _ *tool, _ string) { e.cut() },
			"stopped": func(_ *testing.T, _ *engine, p *tool, _ string) { p.signal(syscall.SIGSTOP) },
			"killed":  func(_ *testing.T, _ *engine, p *tool, _ string) { p.signal(syscall.SIGKILL) },
			"broken":  func(t *testing.T, e *engine, _ *tool, key string) { e.run(t, "break", key, "--yes").exits(0) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := e.open(t) // with a proxy of its own
				key := newKey(t)
				setting, command := testChild(t, "pair of stamps")
				args := []string{"run", "-v", "-k", key, "--grace", "3s", "--", command}
				first := launch(t, append(e.env, setting, "HOLDFAST_LEASE=9s"), nil, args...)
				if !becomes(func() bool { return len(first.stamped().processes) == 2 || first.hasEnded() }) {
					t.Fatal("the first command does not run")
				}
				second := launch(t, append(e.direct, setting, "HOLDFAST_LEASE="+calm), nil, args...)
				second.asks()
				waits(t, e, key)
				if n := len(second.stamped().processes); n != 0 {
					t.Fatal("the second command runs already")
				}
				trouble(t, e, first, key)
				second.writes("stamps", "\n")
				time.Sleep(500 * time.Millisecond) // time for the last stamps of the first
				first.signalIfAlive(syscall.SIGCONT)
				if name == "killed" {
					first.wait()
				} else {
					first.exits(79)
				}
				before, after := first.stamped(), second.stamped()
				if before.token >= after.token {
					t.Errorf("tokens %d and %d", before.token, after.token)
				}
				for _, pid := range before.processes {
					dies(t, "the first command", pid)
				}
				_ = second.cmd.Process.Kill()
				for _, pid := range after.processes {
					dies(t, "the second command", pid) // before its folder goes
				}
				overlap := before.last.Sub(after.first)
				if name == "broken" {
					t.Logf("the first command lived on for %v", overlap)
				} else if overlap > 0 {
					t.Errorf("both commands were alive for %v", overlap)
				}
			})
		}
	})
}

// signalIfAlive sends a signal, unless the process is gone.
func (p *tool) signalIfAlive(s syscall.Signal) {
	p.t.Helper()
	if !p.hasEnded() {
		_ = p.cmd.Process.Signal(s)
	}
}

// guardOf returns the process that guards the tool's command, other than the earlier
// ones.
func (p *tool) guardOf(before ...int) int {
	p.t.Helper()
	found := 0
	name := "holdfast guard\x00of\x00" + p.key() + "\x00"
	if !becomes(func() bool {
		entries, _ := os.ReadDir("/proc")
		for _, entry := range entries {
			var pid int
			if _, err := fmt.Sscan(entry.Name(), &pid); err != nil {
				continue
			}
			// state ppid
			if s := stat(pid); len(s) > 1 && s[1] == fmt.Sprint(p.cmd.Process.Pid) && alive(pid) && !slices.Contains(before, pid) &&
				read(fmt.Sprintf("/proc/%d/cmdline", pid)) == name {
				found = pid
			}
		}
		return found != 0 || p.hasEnded()
	}) || found == 0 {
		p.t.Fatal("the command has no guard")
	}
	return found
}

// key is the key that the tool locks.
func (p *tool) key() string { return p.cmd.Args[slices.Index(p.cmd.Args, "-k")+1] }

// TestRunGuard tests the process that kills the command when the tool cannot: it gets
// none of the tool's settings, does not keep the tool's output open, survives the signals
// that end other processes, and ends with the tool.
func TestRunGuard(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--", "sh", "-c", untilGo)
		p.pid("pid")
		guard := p.guardOf()
		// It is ready when it sleeps in poll: before that, signals end it.
		if !becomes(func() bool {
			return state(guard) == "S" && read(fmt.Sprintf("/proc/%d/environ", guard)) == "GOMAXPROCS=1\x00"
		}) {
			t.Error("the guard has other settings than its own")
		}
		if !becomes(func() bool { return read(fmt.Sprintf("/proc/%d/comm", guard)) == "hf-guard\n" }) {
			t.Errorf("ps shows the guard as %q", read(fmt.Sprintf("/proc/%d/comm", guard)))
		}
		for _, fd := range []string{"1", "2"} {
			if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", guard, fd)); to != os.DevNull {
				t.Errorf("descriptor %s of the guard is %s", fd, to)
			}
		}
		if !becomes(func() bool { return ignores(guard, syscall.SIGTERM) }) {
			t.Error("the guard does not ignore SIGTERM")
		}
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			_ = syscall.Kill(guard, s)
		}
		p.goes()
		p.exits(5)
		dies(t, "the guard", guard)
	})
}

// ignores reports whether a process ignores a signal.
func ignores(pid int, s syscall.Signal) bool {
	for line := range strings.Lines(read(fmt.Sprintf("/proc/%d/status", pid))) {
		var mask uint64
		if rest, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			_, _ = fmt.Sscanf(rest, "%x", &mask)
			return mask&(1<<(s-1)) != 0
		}
	}
	return false
}

// TestRunGuardReplaced tests hazard C4: the tool notices and reports the guard's death,
// or its stop, and starts another guard. If the tool is killed or stopped after that, no
// process of the command outlives the lease.
func TestRunGuardReplaced(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
			for name, trouble := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
				t.Run(fmt.Sprintf("%v, and the tool %s", by, name), func(t *testing.T) {
					t.Parallel()
					key := newKey(t)
					setting, command := testChild(t, "pair of stamps")
					p := launch(t, slices.Concat(e.env, []string{setting}), nil, "run", "-k", key, "--lease", "6s", "--grace", "2s", "--", command)
					if !becomes(func() bool { return len(p.stamped().processes) == 2 || p.hasEnded() }) {
						t.Fatal("the command does not run")
					}
					var guards []int
					for range 2 {
						guard := p.guardOf(guards...)
						guards = append(guards, guard)
						if err := syscall.Kill(guard, by); err != nil {
							t.Fatal(err)
						}
						dies(t, "the guard", guard)
					}
					p.guardOf(guards...)
					// It exists a moment before it has its orders; the tool reports it after
					// that.
					if !becomes(func() bool { return strings.Count(read(p.stderr), "another takes its place") == 2 || p.hasEnded() }) || p.hasEnded() {
						t.Fatalf("the second guard is not replaced: %s", read(p.stderr))
					}
					p.signal(trouble)
					lock, err := e.dial(t, "").Acquire(limited(t), key)
					granted := time.Now()
					if err != nil {
						t.Fatal(err)
					}
					for _, pid := range p.stamped().processes {
						dies(t, "the command", pid)
					}
					if over := p.stamped().last.Sub(granted); over > 0 {
						t.Errorf("the command ran on for %v when the lock was another's", over)
					}
					_ = lock.Release(limited(t))
				})
			}
		}
	})
}

// TestRunGuardless tests hazard C4 where the guard cannot be replaced: the tool ends the
// command with its grace, while it holds the lock, rather than let it run unguarded.
func TestRunGuardless(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for name, prevent := range map[string]func(p *tool){
			"none can be started": func(p *tool) {
				none := unix.Rlimit{Cur: 3, Max: 3} // descriptors
				if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
					t.Fatal(err)
				}
				_ = syscall.Kill(p.guardOf(), syscall.SIGKILL)
			},
			"each is killed": func(p *tool) {
				for killed := []int(nil); len(killed) < 5; {
					guard := p.guardOf(killed...)
					killed = append(killed, guard)
					_ = syscall.Kill(guard, syscall.SIGKILL)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--", "sh", "-c", heedTerm)
				p.pid("pid")
				prevent(p)
				p.exits(69)
				if read(p.file("signals")) != "TERM\n" || !strings.Contains(read(p.stderr), "no other can take its place") {
					t.Errorf("the command got %q, and the user %q", read(p.file("signals")), read(p.stderr))
				}
			})
		}
	})
}

// TestRunGuardAndToolKilled tests the case in which both are killed: the kernel ends the
// command itself.
func TestRunGuardAndToolKilled(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--", "sh", "-c", untilGo)
		pid, guard := p.pid("pid"), p.guardOf()
		p.signal(syscall.SIGSTOP) // so that the tool starts no other
		_ = syscall.Kill(guard, syscall.SIGKILL)
		p.signal(syscall.SIGKILL)
		p.wait()
		dies(t, "the command", pid)
	})
}

// TestRunOutlastsLease checks that the guard learns of each renewal: a command may run
// for longer than a lease.
func TestRunOutlastsLease(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.run(t, "run", "-k", newKey(t), "--lease", "10s", "--", "sh", "-c", "sleep 14; exit 4")
		p.exits(4)
		p.says("")
	})
}
