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
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// stampPair is two processes in one group that ignore signals and stamp a file each millisecond.
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
	gap         time.Duration // the longest in which a process wrote none
	processes   []int
	token       holdfast.Token
}

func (p *tool) stamped() stamped {
	p.t.Helper()
	var s stamped
	latest := make(map[int]time.Time) // of each process
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
		if before, known := latest[pid]; known {
			s.gap = max(s.gap, moment.Sub(before))
		} else {
			s.processes = append(s.processes, pid)
		}
		latest[pid] = moment
	}
	return s
}

// TestRunNeverTwo tests the purpose of run: the second's command never begins before all processes of the first's are dead. After a break,
// only tokens exclude.
func TestRunNeverTwo(t *testing.T) {
	const lease = 15 * time.Second
	each(t, func(t *testing.T, e *engine) {
		for name, trouble := range map[string]struct {
			happens func(e *engine, p *tool, key string)
			says    string
			dead    time.Duration // how long before the end of the lease the first is to be dead; 0 if it may live on
		}{
			"cut off": {func(e *engine, _ *tool, _ string) { e.cut() }, ": SIGTERM now, SIGKILL in ", drift(lease)},
			"stopped": {func(_ *engine, p *tool, _ string) { p.signal(syscall.SIGSTOP) }, " lost: ", drift(lease)},
			"killed":  {func(_ *engine, p *tool, _ string) { p.signal(syscall.SIGKILL) }, "", lease / 3},
			"broken": {
				func(e *engine, p *tool, key string) { e.run(p.t, "break", key, "--yes").exits(0) },
				"broken by somebody else: SIGKILL to the command", 0,
			},
		} {
			t.Run(name, func(t *testing.T) {
				begin(t)
				e := e.open(t) // with a proxy of its own
				key := newKey(t)
				setting, command := testChild(t, "pair of stamps")
				args := []string{"run", "-v", "-k", key, "--grace", "6s", "--", command} // nearly the longest grace
				first := launch(t, append(e.env, setting, "HOLDFAST_LEASE="+lease.String()), nil, args...)
				await(t, func() bool { return len(first.stamped().processes) == 2 || first.hasEnded() }, "the first command does not run")
				second := launch(t, append(e.direct, setting, "HOLDFAST_LEASE="+calm), nil, args...)
				second.asks()
				waits(t, e, key)
				early := first.hasEnded() || len(second.stamped().processes) != 0
				if !early {
					trouble.happens(e, first, key)
				}
				second.writes("stamps", "\n")
				time.Sleep(500 * time.Millisecond) // time for the last stamps of the first
				_ = first.cmd.Process.Signal(syscall.SIGCONT)
				first.wait()
				before, after := first.stamped(), second.stamped()
				if before.token >= after.token {
					t.Errorf("tokens %d and %d", before.token, after.token)
				}
				for _, pid := range before.processes {
					dies(t, "the first command", pid)
				}
				before = first.stamped()
				_ = second.cmd.Process.Kill()
				for _, pid := range after.processes {
					dies(t, "the second command", pid) // before its folder goes
				}
				overlap := before.last.Sub(after.first)
				if trouble.dead == 0 && !early {
					t.Logf("the first command lived on for %v", overlap)
				} else if overlap > 0 {
					together(t, max(trouble.dead, drift(lease)), before.gap, "both commands were alive for %v", overlap)
				}
				if early {
					verdict.Fatalf(t, "the first has lost its lock too early; stderr %q", read(first.stderr))
				}
				if name != "killed" {
					first.exits(statusLost, trouble.says)
				}
			})
		}
	})
}

// guardOf returns the guard of the tool's command, other than the earlier ones.
func (p *tool) guardOf(before ...int) (guard int) {
	p.t.Helper()
	name := "holdfast guard\x00of\x00" + p.cmd.Args[slices.Index(p.cmd.Args, "-k")+1] + "\x00"
	await(p.t, func() bool {
		for _, pid := range childrenOf(p.cmd.Process.Pid) {
			if alive(pid) && !slices.Contains(before, pid) && read(fmt.Sprintf("/proc/%d/cmdline", pid)) == name {
				guard = pid
			}
		}
		return guard != 0 || p.hasEnded()
	}, "the command has no guard")
	if guard == 0 {
		verdict.Fatalf(p.t, "it has ended when its command was to get a guard; stderr %q", read(p.stderr))
	}
	return guard
}

// TestRunGuard tests the guard: it has none of the tool's settings and files, survives the signals that end
// other processes, and ends with the tool.
func TestRunGuard(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--", "sh", "-c", untilGo)
		p.pid("pid")
		guard := p.guardOf()
		// It is ready when it sleeps in poll: before that, signals end it.
		await(t, func() bool {
			return state(guard) == "S" && read(fmt.Sprintf("/proc/%d/environ", guard)) == "GOMAXPROCS=1\x00"
		},
			"the guard has other settings than its own")
		await(t, func() bool { return read(fmt.Sprintf("/proc/%d/comm", guard)) == "hf-guard\n" }, "ps shows the guard by another name")
		for _, fd := range []string{"1", "2"} {
			if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", guard, fd)); to != os.DevNull {
				t.Errorf("descriptor %s of the guard is %s", fd, to)
			}
		}
		await(t, func() bool { return ignores(guard, syscall.SIGTERM) }, "the guard does not ignore SIGTERM")
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

// TestRunGuardReplaced tests hazard C4: the tool replaces a guard that was killed or stopped. If the tool is
// killed or stopped after that, no process of the command outlives the lease.
func TestRunGuardReplaced(t *testing.T) {
	const lease = 15 * time.Second
	each(t, func(t *testing.T, e *engine) {
		for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
			for name, trouble := range map[string]struct {
				signal syscall.Signal
				dead   time.Duration // how long before the end of the lease the command is to be dead
			}{"killed": {syscall.SIGKILL, lease / 3}, "stopped": {syscall.SIGSTOP, drift(lease)}} {
				t.Run(fmt.Sprintf("%v, and the tool %s", by, name), func(t *testing.T) {
					begin(t)
					key := newKey(t)
					setting, command := testChild(t, "pair of stamps")
					p := launch(t, slices.Concat(e.env, []string{setting}), nil, "run", "-k", key, "--lease", lease.String(), "--grace", "2s", "--", command)
					await(t, func() bool { return len(p.stamped().processes) == 2 || p.hasEnded() }, "the command does not run")
					var guards []int
					for range 2 {
						guard := p.guardOf(guards...)
						guards = append(guards, guard)
						must(t, syscall.Kill(guard, by))
						dies(t, "the guard", guard)
					}
					p.guardOf(guards...)
					// It exists a moment before it has its orders; the tool reports it after that.
					await(t, func() bool { return strings.Count(read(p.stderr), "another takes its place") == 2 }, "the second guard is not replaced")
					p.signal(trouble.signal)
					lock := e.acquire(t, key, "")
					granted := time.Now()
					for _, pid := range p.stamped().processes {
						dies(t, "the command", pid)
					}
					stamps := p.stamped()
					if over := stamps.last.Sub(granted); over > 0 {
						together(t, trouble.dead, stamps.gap, "the command ran on for %v when the lock was another's", over)
					}
					release(t, lock)
				})
			}
		}
	})
}

// TestRunGuardless tests hazard C4 where the guard cannot be replaced: the tool ends the command.
func TestRunGuardless(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for name, prevent := range map[string]func(p *tool){
			"none can be started": func(p *tool) {
				none := unix.Rlimit{Cur: 3, Max: 3} // descriptors
				must(t, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &none, nil))
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
				p.writes("stderr", "no other can take its place")
				p.gets("TERM\n")
			})
		}
	})
}

// TestRunGuardAndToolKilled tests hazard C4 where both are killed: the kernel ends the command itself.
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
