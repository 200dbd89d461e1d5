package cli_test

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInterruptWhileWaiting checks that Ctrl-C and similar signals leave the queue:
// nothing stays behind, and the status is the signal's.
func TestInterruptWhileWaiting(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			key, holder := newKey(t), e.dial(t, "")
			lock, err := holder.Acquire(limited(t), key)
			if err != nil {
				t.Fatal(err)
			}
			p := e.start(t, "run", "-v", "-k", key, "--lease", calm, "--", "sh", "-c", `touch "$DIR/ran"`)
			p.asks()
			waits(t, e, key)
			p.signal(s)
			p.exits(128 + int(s))
			p.says("interrupted by " + unix.SignalName(s))
			info, err := holder.Inspect(limited(t), key)
			if err != nil {
				t.Fatal(err)
			}
			if len(info.Queue) != 0 {
				t.Errorf("after the end the queue is %v", info.Queue)
			}
			_ = lock.Release(limited(t))
			free(t, e, key)
		}
	})
}

// TestInterruptTwice checks that a second Ctrl-C ends the tool at once if the engine does
// not answer: after the first, and the command's end, the tool waits for the confirmation
// of the release.
func TestInterruptTwice(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		p := e.start(t, "run", "-k", newKey(t), "--lease", calm, "--timeout", "1h", "--", "sh", "-c",
			`echo $$ >"$DIR/pid"; until [ -e "$DIR/go" ]; do sleep 0.02; done`)
		pid := p.pid("pid")
		e.cut()
		if err := os.WriteFile(p.file("go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		dies(t, "the command", pid)
		if !becomes(func() bool { return state(pid) == "" }) {
			t.Fatal("the command's end is not noticed")
		}
		if !becomes(func() bool { return p.cmd.Process.Signal(syscall.SIGINT) != nil }) {
			t.Fatal("no number of SIGINT ends it")
		}
		p.wait()
		if s := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGINT {
			t.Errorf("it ended with %s, want an end by SIGINT", p.end())
		}
	})
}

// TestInterruptCommand checks that the command gets all signals while it runs, and that
// the tool stays until the command has ended.
func TestInterruptCommand(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", calm, "--", "sh", "-c",
			`n=0; trap 'n=$((n+1)); echo "$n." >>"$DIR/signals"; [ $n -lt 3 ] || exit 9' INT; echo $$ >"$DIR/pid"; while :; do sleep 1000 & wait; done`)
		p.pid("pid")
		for _, n := range []string{"1.", "2.", "3."} {
			p.signal(syscall.SIGINT)
			p.writes("signals", n)
		}
		p.exits(9)
		free(t, e, key)
	})
}

// TestInterruptLeftovers checks that one signal cuts short the grace of a command's
// leftover processes, and that the tool then releases the lock.
func TestInterruptLeftovers(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", "60s", "--grace", "25s", "--", "sh", "-c",
			`(trap "" TERM; sh -c 'echo $PPID' >"$DIR/pid"; exec sleep 1000) & echo $$ >"$DIR/parent"; until [ -s "$DIR/pid" ]; do sleep 0.02; done; exit 3`)
		pid, parent := p.pid("pid"), p.pid("parent")
		dies(t, "the command itself", parent)
		// A zombie is dead, but the tool may not know yet: wait until it has been reaped.
		if !becomes(func() bool { return state(parent) == "" }) {
			t.Fatal("the command's end is not noticed")
		}
		p.signal(syscall.SIGINT)
		p.exits(3)
		if alive(pid) {
			t.Error("what the command left behind lives on")
		}
		free(t, e, key)
	})
}
