package cli_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// twoStamps is a command of two processes in one group that ignore signals and stamp a file each millisecond.
const twoStamps = "stamp & exec stamp"

// stamp is the program of the two.
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

// TestRunNeverTwo tests the purpose of run: the second command begins only after all processes of the first are dead, in each kind of
// trouble. After a break, only tokens exclude.
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
				func(e *engine, p *tool, key string) { launch(p.t, e.direct, "break", key, "--yes").exits(0) },
				"broken by somebody else: SIGKILL to the command", 0,
			},
		} {
			t.Run(name, func(t *testing.T) {
				begin(t)
				e := e.open(t) // with a proxy of its own
				key := newKey(t)
				args := []string{"run", "-v", "-k", key, "--grace", "6s", "--", "sh", "-c", twoStamps} // nearly the longest grace
				first := launch(t, append(e.env, "HOLDFAST_LEASE="+lease.String()), args...)
				await(t, func() bool { return len(first.stamped().processes) == 2 || first.hasEnded() }, "the first command does not run")
				second := launch(t, e.direct, args...)
				second.writes("stderr", "the lock is asked for")
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
				if name == "killed" {
					return
				}
				if first.exits(statusLost); !strings.Contains(read(first.stderr), trouble.says) {
					t.Errorf("the first says %q, want %q", read(first.stderr), trouble.says)
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
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
		for _, thread := range threads {
			for child := range strings.FieldsSeq(read(thread)) {
				pid, _ := strconv.Atoi(child)
				if alive(pid) && !slices.Contains(before, pid) && read(fmt.Sprintf("/proc/%d/cmdline", pid)) == name {
					guard = pid
				}
			}
		}
		return guard != 0 || p.hasEnded()
	}, "the command has no guard")
	if guard == 0 {
		verdict.Fatalf(p.t, "it has ended when its command was to get a guard; stderr %q", read(p.stderr))
	}
	return guard
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
					p := launch(t, e.env, "run", "-k", key, "--lease", lease.String(), "--grace", "2s", "--", "sh", "-c", twoStamps)
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
