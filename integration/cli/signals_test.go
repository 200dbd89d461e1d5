package cli_test

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// ignoreTerm is a command that ignores SIGTERM.
const ignoreTerm = `trap "" TERM; echo $$ >"$DIR/pid"; exec sleep 1000`

// heedTerm records SIGTERM and then exits cleanly.
const heedTerm = `trap 'echo TERM >"$DIR/signals"; exit 0' TERM; echo $$ >"$DIR/pid"; sleep 1000 & wait`

// leadOnce notes its term in DIR/terms and its process in DIR/pid, waits for DIR/go-N in its N-th term, and
// exits with what is in that file.
const leadOnce = `echo "$HOLDFAST_TOKEN" >>"$DIR/terms"; n=$(wc -l <"$DIR/terms"); echo $$ >"$DIR/pid-$n"
	until [ -s "$DIR/go-$n" ]; do sleep 0.02; done; exit $(cat "$DIR/go-$n")`

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
	}, "no request waits for the key")
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

// TestRunBrokenPipe checks that run and its command continue when no program reads their output any more.
func TestRunBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		w := unread(t)
		p := prepare(t, e.env, "run", "-v", "-k", key, "--lease", calm, "--", "sh", "-c", untilGo)
		p.cmd.Stdout, p.cmd.Stderr = w, w
		p.launch()
		_ = w.Close()
		p.pid("pid")
		time.Sleep(500 * time.Millisecond)
		isHeld(t, e, key)
		p.goes()
		p.exits(5)
		free(t, e, key)
	})
}

// TestRunForwardsSignals checks that the tool forwards each signal to the command once.
func TestRunForwardsSignals(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		setting, command := testChild(t, "notes signals")
		p := launch(t, append(e.env, setting), nil, "run", "-k", newKey(t), "--lease", calm, "--", command)
		pid := p.pid("pid")
		var want strings.Builder
		for _, s := range []syscall.Signal{
			syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
			syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGINT, syscall.SIGTERM,
		} {
			p.signal(s)
			want.WriteString(shortName(s) + "\n")
			p.writes("signals", want.String())
		}
		must(t, syscall.Kill(pid, syscall.SIGPIPE))
		p.exits(42)
		p.gets(want.String())
	})
}

// TestRunReapsOrphans checks that no zombies pile up when the tool is PID 1 of a container, which adopts
// orphans.
func TestRunReapsOrphans(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		setting, adopter := testChild(t, "adopts")
		const orphan = `sh -c 'echo $$ >"$DIR/$0"; until [ -e "$DIR/die" ]; do sleep 0.02; done' `
		p := prepare(t, append(e.direct[:len(e.direct):len(e.direct)], setting),
			"run", "-k", newKey(t), "--lease", calm, "--", "sh", "-c", "("+orphan+"inside &); (setsid "+orphan+"outside &); "+untilGo)
		p.cmd.Path, p.cmd.Args = adopter, append([]string{adopter, p.cmd.Path}, p.cmd.Args[1:]...)
		p.launch()
		tool := strconv.Itoa(p.cmd.Process.Pid)
		for _, name := range []string{"inside", "outside"} {
			pid := p.pid(name)
			await(t, func() bool { s := stat(pid); return s != nil && s[1] == tool }, "the orphan %s is not the tool's child", name)
		}
		must(t, os.WriteFile(p.file("die"), nil, 0o644))
		for _, name := range []string{"inside", "outside"} {
			if pid := p.pid(name); !becomes(func() bool { return stat(pid) == nil }) {
				t.Errorf("the orphan %s is still there, in state %s", name, stat(pid)[0])
			}
		}
		p.goes()
		p.exits(5) // reaping did not lose the command's status
	})
}

// TestStderrFull tests hazard C12: run and elect watch their command although no program reads their messages. A later reader gets all of
// them.
func TestStderrFull(t *testing.T) {
	const lease = 12 * time.Second
	for _, command := range []string{"run", "elect"} {
		t.Run(command, func(t *testing.T) {
			each(t, func(t *testing.T, e *engine) {
				key := newKey(t)
				r, w := pipe(t)
				defer r.Close()
				full := fill(t, int(w.Fd()))
				p := prepare(t, e.env, command, "-k", key, "--lease", lease.String(), "--", "sh", "-c", untilGo)
				p.cmd.Stderr = w
				p.launch()
				_ = w.Close()
				p.pid("pid")
				e.run(t, "ask", key).exits(0)
				time.Sleep(lease * 4 / 3) // longer than the guard leaves it alive without a word
				p.goes()
				text := make(chan string, 1)
				go func() {
					all, _ := io.ReadAll(r)
					text <- string(all[min(full, len(all)):])
				}()
				p.exits(5)
				said := <-text
				if strings.Contains(said, " lost: ") {
					verdict.Fatalf(t, "the lock was lost: %q", said)
				}
				if !strings.Contains(said, "holdfast: another client asks for "+key+": it is held until the command ends\n") {
					t.Errorf("stderr is %q", said)
				}
			})
		})
	}
}

// fill fills a pipe, and returns with how many bytes.
func fill(t *testing.T, pipe int) (n int) {
	t.Helper()
	must(t, unix.SetNonblock(pipe, true))
	for {
		some, err := unix.Write(pipe, make([]byte, 4096))
		if err != nil {
			break
		}
		n += some
	}
	must(t, unix.SetNonblock(pipe, false))
	return n
}
