package cli_test

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// waits waits until somebody waits for a key, if the engine shows waiters, and otherwise for a while.
func waits(t *testing.T, e *engine, key string) {
	t.Helper()
	if e.name != "zookeeper" {
		time.Sleep(4 * poll)
		return
	}
	observer := e.dial(t, "")
	await(t, func() bool {
		info, err := observer.Inspect(limited(t), key)
		return err == nil && len(info.Queue) > 0
	}, "nobody waits for the key")
}

// TestRunLost checks that a command gets its grace, and that the status is that of a lost lock.
func TestRunLost(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", "15s", "--grace", "5s", "--", "sh", "-c", heedTerm)
		p.pid("pid")
		e.cut()
		p.writes("signals", "TERM\n")
		p.exits(79, ": SIGTERM now, SIGKILL in ")
	})
}

// TestRunTTL checks that the tool ends the command, and only then can another client get the lock.
func TestRunTTL(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.run(t, "run", "-k", newKey(t), "--lease", calm, "--ttl", "3s", "--grace", "10s", "--", "sh", "-c", heedTerm)
		if read(p.file("pid")) == "" && read(p.file("signals")) == "" {
			verdict.Inconclusive(t, "the command had not set its trap when it got SIGTERM")
		}
		p.exits(124, "the command has run for 3s (--ttl): SIGTERM now, SIGKILL in ")
		p.gets("TERM\n")

		key := newKey(t)
		p = e.start(t, "run", "-k", key, "--lease", calm, "--ttl", "3s", "--grace", "1s", "--", "sh", "-c", ignoreTerm)
		e.next(t, key, p.pid("pid"))
		p.exits(124)
	})
}

// TestRunLostAtTheEnd tests the status of a command that ends just as its lock is lost: lost.
func TestRunLostAtTheEnd(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-v", "-k", key, "--lease", calm, "--", "sh", "-c", untilGo)
		pid := p.pid("pid")
		p.begins()
		p.signal(syscall.SIGSTOP)
		p.goes()
		dies(t, "the command", pid)
		e.run(t, "break", key, "--yes").exits(0)
		p.signal(syscall.SIGCONT)
		p.exits(79, "broken by somebody else")
	})
}

// TestRunOutage checks that a line tells when the engine cannot be reached, and another one when it can again.
func TestRunOutage(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--", "sh", "-c", untilGo)
		p.pid("pid")
		e.cut()
		p.writes("stderr", "holdfast: disconnected: the lock is lost unless the engine is back in time\n")
		e.heal()
		p.writes("stderr", "holdfast: connected again\n")
		p.goes()
		p.exits(5)
	})
}

// TestRunReleaseUnconfirmed tests the end of a command during an outage: its own status, and a warning.
func TestRunReleaseUnconfirmed(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--timeout", "6s", "--", "sh", "-c", untilGo)
		p.pid("pid")
		e.cut()
		p.goes()
		p.exits(5, "others get the lock when its lease is over")
	})
}

// TestRunGrace checks that a grace cannot outlast the lease, even if the servers shorten the session.
func TestRunGrace(t *testing.T) {
	begin(t)
	const lease = 20 * time.Second
	server := zkserver.New(t, zkserver.Config{MinSessionTimeout: time.Second, MaxSessionTimeout: lease})
	e := zooKeeperAt(t, server.Addr())
	e.run(t, "run", "-k", "a", "--lease", "60s", "--grace", "9s", "--", "true").exits(64, "half of the lease, 20s, or more")
	e.run(t, "run", "-k", "a", "--lease", "60s", "--grace", "5s", "--", "true").exits(0)

	p := e.start(t, "run", "-k", "a", "--", "sh", "-c", ignoreTerm)
	pid := p.pid("pid")
	e.cut()
	e.expires(t, "a", lease, pid)
	p.exits(79, "SIGKILL in ")
}

// TestRunFailClosed checks that the key of a crashed holder stays held until somebody breaks it.
func TestRunFailClosed(t *testing.T) {
	begin(t)
	for _, mode := range []string{"fail-closed", "fail-closed-fenced"} {
		t.Run(mode, func(t *testing.T) {
			begin(t)
			e := newDynamoDB(t)
			key := newKey(t)
			p := e.start(t, "run", "-k", key, "--mode", mode, "--lease", "5s", "--owner", "crashed", "--", "sh", "-c",
				`echo "token ${HOLDFAST_TOKEN-none}" >"$DIR/token"; echo $$ >"$DIR/pid"; exec sleep 1000`)
			pid := p.pid("pid")
			if got := read(p.file("token")); (got == "token none\n") != (mode == "fail-closed") {
				t.Errorf("HOLDFAST_TOKEN: %q", got)
			}
			p.signal(syscall.SIGKILL)
			p.wait()
			dies(t, "the command", pid)

			again := []string{"run", "-k", key, "--mode", mode, "--lease", "5s", "--wait", "10s", "--", "true"}
			e.run(t, again...).exits(75, `held by "crashed"`)
			if got := field(t, e.run(t, "show", key, "--mode", mode).output(), "held by"); got != "crashed" {
				t.Errorf("show reports %q as the holder", got)
			}
			e.run(t, "break", key, "--mode", mode, "--yes").exits(0)
			e.run(t, again...).exits(0)
			if mode == "fail-closed-fenced" { // which leaves an item
				e.run(t, "run", key, "--mode", "fail-closed", "true").exits(69, "the key is used with another mode than --mode fail-closed\n")
			}
		})
	}
}

// TestInterruptWhileWaiting checks that signals leave the queue, and that the status is the signal's.
func TestInterruptWhileWaiting(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			key, holder := newKey(t), e.dial(t, "")
			lock, err := holder.Acquire(limited(t), key)
			must(t, err)
			p := e.start(t, "run", "-v", "-k", key, "--lease", calm, "--", "sh", "-c", `touch "$DIR/ran"`)
			p.asks()
			waits(t, e, key)
			p.signal(s)
			p.exits(128+int(s), "interrupted by "+unix.SignalName(s))
			info, err := holder.Inspect(limited(t), key)
			must(t, err)
			if len(info.Queue) != 0 {
				t.Errorf("after the end the queue is %v", info.Queue)
			}
			_ = lock.Release(limited(t))
			free(t, e, key)
		}
	})
}

// TestInterruptTwice checks that a second Ctrl-C ends the tool while it waits for a release to be confirmed.
func TestInterruptTwice(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--timeout", "1h", "--", "sh", "-c",
			`echo $$ >"$DIR/pid"; until [ -e "$DIR/go" ]; do sleep 0.02; done`)
		pid := p.pid("pid")
		e.cut()
		p.goes()
		dies(t, "the command", pid)
		await(t, func() bool { return state(pid) == "" }, "the command's end is not noticed")
		await(t, func() bool { return p.cmd.Process.Signal(syscall.SIGINT) != nil }, "no number of SIGINT ends it")
		p.wait()
		if s := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGINT {
			t.Errorf("it ended with %s, want an end by SIGINT", p.end())
		}
	})
}

// TestInterruptLeftovers checks that a signal cuts short the grace of a command's leftover processes.
func TestInterruptLeftovers(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", "60s", "--grace", "25s", "--", "sh", "-c",
			`(trap "" TERM; sh -c 'echo $PPID' >"$DIR/pid"; exec sleep 1000) & echo $$ >"$DIR/parent"; until [ -s "$DIR/pid" ]; do sleep 0.02; done; exit 3`)
		pid, parent := p.pid("pid"), p.pid("parent")
		dies(t, "the command itself", parent)
		// A zombie is dead, but the tool may not know yet: wait until it has been reaped.
		await(t, func() bool { return state(parent) == "" }, "the command's end is not noticed")
		p.signal(syscall.SIGINT)
		p.exits(3)
		if alive(pid) {
			t.Error("what the command left behind lives on")
		}
		free(t, e, key)
	})
}
