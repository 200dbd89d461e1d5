package cli_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRunHolds checks that the command runs while the lock is held, and knows its key and token.
func TestRunHolds(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := launch(t, append(e.env, "HOLDFAST_TOKEN=1"), strings.NewReader("some input\n"),
			"run", "-k", key, "--lease", calm, "--data", "a note", "--",
			"sh", "-c", `cat; echo "$HOLDFAST_KEY|$HOLDFAST_OWNER|$HOLDFAST_TOKEN"; echo oops >&2; `+untilGo)
		p.pid("pid")
		info := e.inspect(t, key)
		if !info.Held || string(info.Data) != "a note" {
			t.Errorf("while the command runs, the key is %+v, want it held with the data", info)
		}
		isHeld(t, e, key)
		p.goes()
		p.exits(5).prints("some input\n" + key + "|" + info.Owner + "|" + info.Token.String() + "\n")
		if got := read(p.stderr); got != "oops\n" {
			t.Errorf("stderr is %q, want only what the command has written", got)
		}
		free(t, e, key)
	})
}

// TestRunByFlags checks that flags configure an engine, and that --engine chooses between two.
func TestRunByFlags(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		var where, rest []string // rest are settings of the AWS SDK, for which the tool has no flags
		for _, s := range e.direct {
			name, value, _ := strings.Cut(s, "=")
			if flag, ours := strings.CutPrefix(name, "HOLDFAST_"); ours && value != "" {
				where = append(where, "--"+strings.ToLower(strings.ReplaceAll(flag, "_", "-")), value)
			} else {
				rest = append(rest, s)
			}
		}
		key := newKey(t)
		for _, c := range []struct {
			env   []string
			flags []string
		}{
			{rest, where},
			{rest, append(where, "--engine", e.name)},
			{append(rest, "HOLDFAST_SERVERS=127.0.0.1:1", "HOLDFAST_TABLE=none", "HOLDFAST_LEASE=0", "HOLDFAST_TIMEOUT="), append(where, "--engine", e.name)},
		} {
			args := append(append([]string{"run", "-k", key, "--lease", calm}, c.flags...), "--", "sh", "-c", "echo $HOLDFAST_KEY; exit 3")
			launch(t, c.env, nil, args...).exits(3).prints(key + "\n")
		}
		free(t, e, key)
	})
}

// TestRunStatus tests the exit status: the command's own, or 128 + n for signal n.
func TestRunStatus(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for script, status := range map[string]int{
			"exit 0":           0,
			"exit 1":           1,
			"exit 64":          64,
			"exit 255":         255,
			"kill -KILL $$":    128 + 9,
			"kill -TERM $$":    128 + 15,
			"kill -SEGV $$":    128 + 11,
			"ulimit -t 1; : &": 0,
		} {
			key := newKey(t)
			e.run(t, "run", "-k", key, "--lease", calm, "sh", "-c", script).exits(status, "")
			free(t, e, key)
		}
	})
}

// TestRunCommandNotRunnable checks that run finds the command before it connects; the engine is unreachable.
func TestRunCommandNotRunnable(t *testing.T) {
	begin(t)
	dir := t.TempDir()
	must(t, errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.WriteFile(filepath.Join(dir, "text"), []byte("hello\n"), 0o644)))
	for _, test := range []struct {
		command string
		status  int
		says    string
	}{
		{"no-such-command", 127, "command not found"},
		{dir + "/no-such-file", 127, "command not found"},
		{dir + "/text/file", 127, "command not found"},
		{"", 127, "command not found"},
		{dir + "/text", 126, "/text: command not executable: permission denied"},
		{dir + "/sub", 126, "not executable"},
		{"text", 126, "not executable"},
		{"evil\x1b[2Jname", 127, `"evil\x1b[2Jname": command not found`},
	} {
		launch(t, []string{"HOLDFAST_SERVERS=127.0.0.1:1", "PATH=/usr/bin:/bin:" + dir}, nil, "run", "-k", "key", "--", test.command).exits(test.status, test.says)
	}
}

// TestRunCommandFailsToStart checks that run then releases the lock, and runs scripts without "#!".
func TestRunCommandFailsToStart(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		dir := t.TempDir()
		for _, test := range []struct {
			content string
			status  int
			says    string
		}{
			{"#!/no/such/interpreter\n", 127, "command not found"},
			{"exit $1\n", 5, ""},
		} {
			script, key := filepath.Join(dir, "script"), newKey(t)
			must(t, os.WriteFile(script, []byte(test.content), 0o755))
			e.run(t, "run", "-k", key, "--lease", calm, "--", script, "5").exits(test.status, test.says)
			free(t, e, key)
		}
	})
}

// TestRunNotAcquired tests --try, --wait and -E: the command does not run, and the status says why.
func TestRunNotAcquired(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		lock := e.acquire(t, key, "the holder")
		for _, test := range []struct {
			flags  []string
			status int
			says   string
		}{
			{[]string{"--try"}, 75, ""},
			{[]string{"-n", "-E", "0"}, 0, ""},
			{[]string{"--wait", "6s"}, 75, "; gave up after 6s"},
			{[]string{"-w", "6s", "--conflict-exit-code", "1"}, 1, "; gave up after 6s"},
		} {
			p := e.run(t, append(append([]string{"run", "-k", key, "--lease", calm}, test.flags...), "touch", filepath.Join(t.TempDir(), "x"))...)
			p.exits(test.status, `holdfast: "`+key+`" is held by "the holder" (token `+lock.Token().String()+")"+test.says+"\n")
			if _, err := os.Stat(p.cmd.Args[len(p.cmd.Args)-1]); err == nil {
				t.Error("the command has run")
			}
		}
		waiting := e.start(t, "run", "-k", key, "--lease", calm, "--wait", "1h", "--", "true")
		release(t, lock)
		waiting.exits(0)
	})
}

// TestTryAfterACrash: a run that tries, of which each is a process of its own, as cron starts them, runs when the last one has been killed
// and its lease is over. On DynamoDB it has to watch for that first; without it the key is held for ever.
func TestTryAfterACrash(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key, lease := newKey(t), calm
		if e.name == "zookeeper" {
			lease = "4s"
		}
		crashed := e.start(t, "run", "-k", key, "--lease", lease, "--", "sh", "-c", heedTerm)
		crashed.pid("pid")
		crashed.signal(syscall.SIGKILL)
		<-crashed.done
		if e.name == "zookeeper" {
			await(t, func() bool {
				info, err := e.dial(t, "").Inspect(limited(t), key)
				return err == nil && !info.Held
			}, "the session does not end")
		} else {
			age(t, e.direct, key)
			if shown := e.run(t, "show", key).output(); !strings.Contains(shown, ", seems dead") {
				t.Errorf("show does not tell that the holder seems to be dead:\n%s", shown)
			}
		}
		e.run(t, "run", "-k", key, "--try", "-E", "7", "--", "true").exits(0)
		free(t, e, key)
	})
}

// TestRunReclaims checks that --reclaim ends an earlier run of the same owner, whose command is killed.
func TestRunReclaims(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		first := e.start(t, "run", "-k", key, "--lease", calm, "--owner", "me", "--", "sh", "-c", heedTerm)
		pid := first.pid("pid")
		// While this one is there, the first can tell who it was.
		await := fmt.Sprintf("echo $HOLDFAST_OWNER; while kill -0 %d; do sleep 0.05; done 2>/dev/null", pid)
		e.run(t, "run", "-k", key, "--lease", calm, "--owner", "me", "--reclaim", "--", "sh", "-c", await).exits(0).prints("me\n")
		first.exits(79, "reclaimed under the same owner name: SIGKILL to the command")
		first.gets("") // no SIGTERM before SIGKILL
		dies(t, "the command", pid)
	})
}

// ignoreTerm is a command that ignores SIGTERM.
const ignoreTerm = `trap "" TERM; echo $$ >"$DIR/pid"; exec sleep 1000`

// heedTerm records SIGTERM and then exits cleanly.
const heedTerm = `trap 'echo TERM >"$DIR/signals"; exit 0' TERM; echo $$ >"$DIR/pid"; sleep 1000 & wait`

// TestRunForks checks that what a command leaves behind is ended before the lock is released.
func TestRunForks(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", calm, "--grace", "5s", "--", "sh", "-c",
			`(trap "" TERM; sh -c 'echo $PPID' >"$DIR/stubborn"; exec sleep 1000) &
			 (trap 'echo TERM >"$DIR/signals"; exit' TERM; sh -c 'echo $PPID' >"$DIR/mild"; sleep 1000 & wait) &
			 until [ -s "$DIR/stubborn" ] && [ -s "$DIR/mild" ]; do sleep 0.02; done
			 exit 3`)
		stubborn, mild := p.pid("stubborn"), p.pid("mild")
		e.next(t, key, stubborn, mild)
		p.exits(3, "")
		p.gets("TERM\n")
	})
}

// TestRunBrokenPipe checks that run and its command continue when nobody reads their output any more.
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
