package cli_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// TestRunDiesBeforeNext tests the main promise of run: a command that ignores SIGTERM is
// dead before another client is granted the lock, although nothing from the engine gets
// through to its holder any more.
//
// The grace is nearly as long as it may be: without the client's margin, the
// command would outlive the lease by it.
func TestRunDiesBeforeNext(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key, observer := newKey(t), e.dial(t, "next")
		p := e.start(t, "run", "-k", key, "--lease", "6s", "--grace", "2600ms", "--", "sh", "-c", ignoreTerm)
		pid := p.pid("pid")
		var alivePast bool
		granted := make(chan error, 1)
		go func() {
			lock, err := observer.Acquire(limited(t), key)
			alivePast = alive(pid)
			if err == nil {
				err = lock.Release(limited(t))
			}
			granted <- err
		}()
		waits(t, e, key)
		e.cut()
		if err := <-granted; err != nil {
			t.Fatal(err)
		}
		if alivePast {
			t.Error("another has the lock while the command is alive")
		}
		p.exits(79)
		p.says(": SIGTERM now, SIGKILL in 2")
	})
}

// waits waits until somebody waits for a key, if the engine shows waiters, and otherwise
// for a while.
func waits(t *testing.T, e *engine, key string) {
	t.Helper()
	if e.name != "zookeeper" {
		time.Sleep(4 * poll)
		return
	}
	observer := e.dial(t, "")
	if !becomes(func() bool {
		info, err := observer.Inspect(limited(t), key)
		return err == nil && len(info.Queue) > 0
	}) {
		t.Fatal("nobody waits for the key")
	}
}

// TestRunLost checks that a command that obeys SIGTERM gets its grace, and that the
// status is that of a lost lock whatever the command's own is.
func TestRunLost(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", "3s", "--grace", "1s", "--", "sh", "-c", heedTerm)
		p.pid("pid")
		e.cut()
		p.writes("signals", "TERM\n")
		p.exits(79)
		p.says(": SIGTERM now, SIGKILL in ")
	})
}

// TestRunBroken checks that a command gets SIGKILL at once if another client may already
// have the lock.
func TestRunBroken(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", "10s", "--grace", "3s", "--", "sh", "-c", heedTerm)
		pid := p.pid("pid")
		b := e.run(t, "break", key, "--yes")
		b.exits(0)
		p.exits(79)
		p.says("broken by somebody else: SIGKILL to the command")
		if alive(pid) || read(p.file("signals")) != "" {
			t.Error("the command was not killed at once")
		}
		free(t, e, key)
	})
}

// TestRunTTL tests --ttl: the tool ends the command, by SIGKILL if need be, and only then
// can another client get the lock.
func TestRunTTL(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		t.Run("heeded", func(t *testing.T) {
			p := e.run(t, "run", "-k", newKey(t), "--lease", calm, "--ttl", "300ms", "--grace", "10s", "--", "sh", "-c", heedTerm)
			p.exits(124)
			p.says("the command has run for 300ms (--ttl): SIGTERM now, SIGKILL in ")
			if read(p.file("signals")) != "TERM\n" {
				t.Error("the command got no SIGTERM")
			}
		})
		t.Run("not heeded", func(t *testing.T) {
			key := newKey(t)
			p := e.start(t, "run", "-k", key, "--lease", calm, "--ttl", "300ms", "--grace", "1s", "--", "sh", "-c", ignoreTerm)
			pid := p.pid("pid")
			lock, err := e.dial(t, "").Acquire(limited(t), key)
			if alive(pid) {
				t.Error("another has the lock while the command is alive")
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = lock.Release(limited(t))
			p.exits(124)
		})
		t.Run("not reached", func(t *testing.T) {
			e.run(t, "run", "-k", newKey(t), "--lease", calm, "--ttl", "1h", "--", "sh", "-c", "exit 4").exits(4)
		})
	})
}

// TestRunParentKilled checks that no process of a command outlives the tool that holds
// its lock, and that the lock is free when its lease is over.
func TestRunParentKilled(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-v", "-k", key, "--lease", "4s", "--", "sh", "-c",
			`(trap "" TERM HUP INT; sh -c 'echo $PPID' >"$DIR/below"; exec sleep 1000) & until [ -s "$DIR/below" ]; do sleep 0.02; done; `+ignoreTerm)
		pid, below := p.pid("pid"), p.pid("below")
		p.begins()
		p.signal(syscall.SIGKILL)
		p.wait()
		dies(t, "the command", pid)
		dies(t, "what the command has started", below)
		lock, err := e.dial(t, "").Acquire(limited(t), key)
		if err != nil {
			t.Fatal(err)
		}
		_ = lock.Release(limited(t))
	})
}

// TestRunStopped tests what happens when the tool is stopped for longer than its lease:
// the command is dead before another client has the lock, and the tool reports the loss
// when it resumes.
func TestRunStopped(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", "5s", "--grace", "1s", "-v", "--", "sh", "-c", heedTerm)
		pid := p.pid("pid")
		p.begins()
		p.signal(syscall.SIGSTOP)
		lock, err := e.dial(t, "").Acquire(limited(t), key)
		if alive(pid) {
			t.Error("another has the lock while the command is alive")
		}
		if err != nil {
			t.Fatal(err)
		}
		p.signal(syscall.SIGCONT)
		p.exits(79)
		p.says(" lost: ")
		if read(p.file("signals")) != "" {
			t.Error("the command got SIGTERM: it was not the guard that has killed it")
		}
		_ = lock.Release(limited(t))
	})
}

// TestRunLostAtTheEnd tests the status of a command that ends by itself just as its lock
// is lost: that of a lost lock, whatever the tool notices first.
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
		p.exits(79)
		p.says("broken by somebody else")
	})
}

// TestRunReleaseUnconfirmed tests the end of a command while the engine cannot be
// reached: its status is its own, since it held the lock, and a line warns that others
// must wait.
func TestRunReleaseUnconfirmed(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--timeout", "2s", "--", "sh", "-c", untilGo)
		p.pid("pid")
		e.cut()
		p.goes()
		p.exits(5)
		p.says("others get the lock when its lease is over")
	})
}

// TestRunGrace checks that the tool refuses a grace that could outlast the lease, even if
// the servers shorten the session, and that the default adapts to the session.
func TestRunGrace(t *testing.T) {
	t.Parallel()
	server := zkserver.New(t, zkserver.Config{MinSessionTimeout: time.Second, MaxSessionTimeout: 3 * time.Second})
	e := zooKeeperAt(t, server.Addr())
	p := e.run(t, "run", "-k", "a", "--lease", "10s", "--grace", "2s", "--", "true")
	p.exits(64)
	p.says("half of the lease, 3s, or more")
	p = e.run(t, "run", "-k", "a", "--lease", "10s", "--grace", "1s", "--", "true")
	p.exits(0)

	p = e.start(t, "run", "-k", "a", "--", "sh", "-c", ignoreTerm)
	pid := p.pid("pid")
	e.cut()
	lock, err := e.dial(t, "").Acquire(limited(t), "a")
	if alive(pid) {
		t.Error("another has the lock while the command is alive")
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = lock.Release(limited(t))
	p.exits(79)
	p.says("SIGKILL in ")
}

// TestRunFailClosed tests a key whose holder crashed in a mode that fails closed: it
// stays held until somebody breaks it, and the tool shows its holder.
func TestRunFailClosed(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"fail-closed", "fail-closed-fenced"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := newDynamoDB(t)
			key := newKey(t)
			p := e.start(t, "run", "-k", key, "--mode", mode, "--lease", "1s", "--owner", "crashed", "--", "sh", "-c",
				`echo "token ${HOLDFAST_TOKEN-none}" >"$DIR/token"; echo $$ >"$DIR/pid"; exec sleep 1000`)
			pid := p.pid("pid")
			if got := read(p.file("token")); (got == "token none\n") != (mode == "fail-closed") {
				t.Errorf("HOLDFAST_TOKEN: %q", got)
			}
			p.signal(syscall.SIGKILL)
			p.wait()
			dies(t, "the command", pid)

			again := []string{"run", "-k", key, "--mode", mode, "--lease", "1s", "--wait", "2500ms", "--", "true"}
			next := e.run(t, again...)
			next.exits(75)
			next.says(`held by "crashed"`)
			shown := e.run(t, "show", key, "--mode", mode)
			shown.exits(0)
			if got := field(t, read(shown.stdout), "held by"); got != "crashed" {
				t.Errorf("show tells of %q as the holder", got)
			}
			e.run(t, "break", key, "--mode", mode, "--yes").exits(0)
			e.run(t, again...).exits(0)
		})
	}
}
