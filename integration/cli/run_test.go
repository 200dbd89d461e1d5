package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestRunHolds tests the purpose of run: the command runs while the lock is held, knows
// its key and token, has the tool's streams, and the lock is free after it.
func TestRunHolds(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key, observer := newKey(t), e.dial(t, "observer")
		p := launch(t, append(e.env, "HOLDFAST_TOKEN=1"), strings.NewReader("some input\n"),
			"run", "-k", key, "--lease", calm, "--data", "a note", "--",
			"sh", "-c", `cat; echo "$HOLDFAST_KEY|$HOLDFAST_OWNER|$HOLDFAST_TOKEN"; echo oops >&2; echo >"$DIR/up"; until [ -e "$DIR/go" ]; do sleep 0.02; done; exit 7`)
		p.writes("up", "\n")
		info, err := observer.Inspect(limited(t), key)
		if err != nil {
			t.Fatal(err)
		}
		if !info.Held || string(info.Data) != "a note" {
			t.Errorf("while the command runs, the key is %+v, want it held with the data", info)
		}
		if _, err := observer.TryAcquire(limited(t), key); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("TryAcquire while the command runs: %v, want ErrHeld", err)
		}
		if err := os.WriteFile(p.file("go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		p.exits(7)
		p.prints("some input\n" + key + "|" + info.Owner + "|" + info.Token.String() + "\n")
		if got := read(p.stderr); got != "oops\n" {
			t.Errorf("stderr is %q, want only what the command has written", got)
		}
		free(t, e, key)
	})
}

// TestRunByFlags checks that flags configure an engine as the environment does, and that
// --engine chooses if the environment has both.
func TestRunByFlags(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		settings := make(map[string]string)
		var rest []string // the tool has no flags for these settings of the AWS SDK
		for _, s := range e.direct {
			name, value, _ := strings.Cut(s, "=")
			if strings.HasPrefix(name, "HOLDFAST_") && value != "" {
				settings[name] = value
			} else {
				rest = append(rest, s)
			}
		}
		var where []string
		if e.name == "zookeeper" {
			where = []string{"--servers", settings["HOLDFAST_SERVERS"]}
		} else {
			where = []string{"--table", settings["HOLDFAST_TABLE"], "--partition-key", settings["HOLDFAST_PARTITION_KEY"], "--poll", settings["HOLDFAST_POLL"]}
		}
		key := newKey(t)
		for _, c := range []struct {
			env   []string
			flags []string
		}{
			{rest, where},
			{rest, append(where, "--engine", e.name)},
			{append(rest, "HOLDFAST_SERVERS=127.0.0.1:1", "HOLDFAST_TABLE=none"), append(where, "--engine", e.name)},
		} {
			args := append(append([]string{"run", "-k", key, "--lease", calm}, c.flags...), "--", "sh", "-c", "echo $HOLDFAST_KEY; exit 3")
			p := launch(t, c.env, nil, args...)
			p.exits(3)
			p.prints(key + "\n")
		}
		free(t, e, key)
	})
}

// TestRunForms tests the ways to say which key and which command.
func TestRunForms(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		for _, args := range [][]string{
			{key, "sh", "-c", "echo $HOLDFAST_KEY; exit 3"},
			{key, "--lease", calm, "--", "sh", "-c", "echo $HOLDFAST_KEY; exit 3"},
			{"-k", key, "sh", "-c", "echo $HOLDFAST_KEY; exit 3"},
			{key, "-c", "echo $HOLDFAST_KEY | cat; exit 3"},
			{"-k", key, "-c", "echo $HOLDFAST_KEY | cat; exit 3"},
		} {
			p := launch(t, append(e.direct, "HOLDFAST_LEASE="+calm, "SHELL="), nil, append([]string{"run"}, args...)...)
			p.exits(3)
			p.prints(key + "\n")
			p.says("")
		}
	})
}

// TestRunStatus tests the exit status: the command's own, or that of shells for
// a command that died of a signal.
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
			p := e.run(t, "run", "-k", key, "--lease", calm, "sh", "-c", script)
			p.exits(status)
			p.says("")
			free(t, e, key)
		}
	})
}

// TestRunCommandNotRunnable checks that run looks for the command before it asks for the
// lock: the engine is unreachable here, and is not asked. The exit status is that of
// shells.
func TestRunCommandNotRunnable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"text": "hello\n", "sub/x": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
		p := launch(t, []string{"HOLDFAST_SERVERS=127.0.0.1:1", "PATH=/usr/bin:/bin:" + dir}, nil, "run", "-k", "key", "--", test.command)
		p.exits(test.status)
		p.says(test.says)
	}
}

// TestRunCommandFailsToStart checks that run releases the lock if the command fails to
// start, and that scripts without an interpreter line work as in every shell.
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
			if err := os.WriteFile(script, []byte(test.content), 0o755); err != nil {
				t.Fatal(err)
			}
			p := e.run(t, "run", "-k", key, "--lease", calm, "--", script, "5")
			p.exits(test.status)
			p.says(test.says)
			free(t, e, key)
		}
	})
}

// TestRunNotAcquired tests --try, --wait and -E: the command does not run, and
// the status says why.
func TestRunNotAcquired(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		lock, err := e.dial(t, "the holder").Acquire(limited(t), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			flags  []string
			status int
		}{
			{[]string{"--try"}, 75},
			{[]string{"-n", "-E", "0"}, 0},
			{[]string{"--wait", "3s"}, 75},
			{[]string{"-w", "3s", "--conflict-exit-code", "1"}, 1},
		} {
			p := e.run(t, append(append([]string{"run", "-k", key, "--lease", calm}, test.flags...), "touch", filepath.Join(t.TempDir(), "x"))...)
			p.exits(test.status)
			p.says(`held by "the holder" (token ` + lock.Token().String() + ")")
			if _, err := os.Stat(p.cmd.Args[len(p.cmd.Args)-1]); err == nil {
				t.Error("the command has run")
			}
		}
		waiting := e.start(t, "run", "-k", key, "--lease", calm, "--wait", "1h", "--", "true")
		if err := lock.Release(limited(t)); err != nil {
			t.Fatal(err)
		}
		waiting.exits(0)
	})
}

// TestRunReclaims tests --reclaim: it ends the lock of an earlier run with the same owner
// name, whose command is killed, since another run has the lock by then.
func TestRunReclaims(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		first := e.start(t, "run", "-k", key, "--lease", calm, "--owner", "me", "--", "sh", "-c", ignoreTerm)
		pid := first.pid("pid")
		second := e.run(t, "run", "-k", key, "--lease", calm, "--owner", "me", "--reclaim", "--", "sh", "-c", "echo $HOLDFAST_OWNER")
		second.exits(0)
		second.prints("me\n")
		first.exits(79)
		first.says("reclaimed under the same owner name: SIGKILL to the command")
		if alive(pid) {
			t.Error("the command lives on")
		}
	})
}

// ignoreTerm is a command that ignores SIGTERM.
const ignoreTerm = `trap "" TERM; echo $$ >"$DIR/pid"; exec sleep 1000`

// heedTerm records SIGTERM and then exits cleanly.
const heedTerm = `trap 'echo TERM >"$DIR/signals"; exit 0' TERM; echo $$ >"$DIR/pid"; sleep 1000 & wait`

// TestRunForks tests the processes that a command leaves behind in its group: they get
// SIGTERM, then SIGKILL, and the lock is released only when they are dead.
func TestRunForks(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "run", "-k", key, "--lease", calm, "--grace", "500ms", "--", "sh", "-c",
			`(trap "" TERM; sh -c 'echo $PPID' >"$DIR/stubborn"; exec sleep 1000) &
			 (trap 'echo TERM >"$DIR/signals"; exit' TERM; sh -c 'echo $PPID' >"$DIR/mild"; sleep 1000 & wait) &
			 until [ -s "$DIR/stubborn" ] && [ -s "$DIR/mild" ]; do sleep 0.02; done
			 exit 3`)
		stubborn, mild := p.pid("stubborn"), p.pid("mild")
		lock, err := e.dial(t, "").Acquire(limited(t), key)
		if alive(stubborn) || alive(mild) {
			t.Error("another has the lock while something of the command is alive")
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = lock.Release(limited(t))
		p.exits(3)
		p.says("")
		if read(p.file("signals")) != "TERM\n" {
			t.Error("what the command has left behind got no SIGTERM")
		}
	})
}

// TestRunBrokenPipe tests a run whose output nobody reads any more: neither the tool,
// which holds the lock and writes a log, nor the command ends.
func TestRunBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		p := prepare(t, e.env, "run", "-v", "-k", key, "--lease", calm, "--", "sh", "-c", untilGo)
		p.deaf = true
		p.launch(nil, w)
		_ = w.Close()
		p.pid("pid")
		time.Sleep(500 * time.Millisecond)
		if _, err := e.dial(t, "").TryAcquire(limited(t), key); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("TryAcquire while the command runs: %v, want ErrHeld", err)
		}
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
			want.WriteString(names[s] + "\n")
			p.writes("signals", want.String())
		}
		if err := syscall.Kill(pid, syscall.SIGPIPE); err != nil {
			t.Fatal(err)
		}
		p.exits(42)
		if got := read(p.file("signals")); got != want.String() {
			t.Errorf("the command got %q, want %q", got, want.String())
		}
	})
}
