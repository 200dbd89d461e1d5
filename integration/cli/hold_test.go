package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// held waits until hold reports the lock, and checks that hold holds it and prints its token.
func (p *tool) held(e *engine, key string) {
	p.t.Helper()
	p.writes("stdout", "\n")
	info := e.inspect(p.t, key)
	if !info.Held {
		verdict.Fatalf(p.t, "hold does not hold the lock; stderr %q", read(p.stderr))
	}
	if read(p.stdout) != info.Token.String()+"\n" {
		p.t.Errorf("hold prints %q; the key is %+v", read(p.stdout), info)
	}
}

// TestHold checks that hold prints the token, and holds the lock until its input ends or a signal comes.
func TestHold(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		r, w := pipe(t)
		key := newKey(t)
		p := launch(t, e.env, r, "hold", key, "--lease", calm, "--data", "a note")
		_ = r.Close()
		p.held(e, key)
		if _, err := w.WriteString("what is written is not looked at\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		isHeld(t, e, key)
		_ = w.Close()
		p.exits(0, "")
		free(t, e, key)

		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			key := newKey(t)
			p := e.start(t, "hold", key, "--lease", calm) // with /dev/null as its input
			p.held(e, key)
			p.signal(s)
			p.exits(0, "")
			free(t, e, key)
		}
		p = e.start(t, "hold", newKey(t), "--lease", calm, "--owner", "me", "-o", "json")
		p.writes("stdout", "\n")
		var got struct {
			Key, Owner string
			Held       bool
			Token      uint64
		}
		if err := json.Unmarshal([]byte(read(p.stdout)), &got); err != nil || !got.Held || got.Owner != "me" || got.Token == 0 || got.Key == "" {
			t.Errorf("in JSON it prints %s", read(p.stdout))
		}
	})
}

// TestHoldScript tests the script in docs/cli.md, which fails if the lock was lost.
func TestHoldScript(t *testing.T) {
	_, script, found := strings.Cut(read(filepath.Join("..", "..", "docs", "cli.md")), "```bash\n")
	script, _, _ = strings.Cut(script, "```\n")
	if !found || !strings.Contains(script, "holdfast hold deploy") {
		t.Fatal("docs/cli.md shows no script with hold")
	}
	each(t, func(t *testing.T, e *engine) {
		dir, key := t.TempDir(), newKey(t)
		run := func(deploy string) (string, error) {
			must(t, os.WriteFile(filepath.Join(dir, "deploy.sh"), []byte("#!/bin/sh\n"+deploy), 0o755))
			cmd := exec.CommandContext(limited(t), "bash", "-c", strings.ReplaceAll(script, "hold deploy", "hold "+key))
			cmd.Dir, cmd.Env = dir, environment(append(e.direct, "HOLDFAST_LEASE="+calm, "KEY="+key, "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"))...)
			out, err := cmd.Output()
			return string(out), err
		}
		out, err := run(`holdfast show "$KEY" -o json | grep -q "\"token\":$2," && echo deployed`)
		if err != nil || out != "deployed\n" {
			t.Errorf("the script prints %q, %v", out, err)
		}
		free(t, e, key)
		if out, err := run(`holdfast break "$KEY" --yes >/dev/null`); err == nil || out != "" {
			t.Errorf("after a loss the script prints %q, %v", out, err)
		}
	})
}

// TestHoldEnds tests the exit status of hold when it fails.
func TestHoldEnds(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "hold", key, "--lease", calm)
		p.held(e, key)
		e.run(t, "hold", key, "--lease", calm, "--try", "-E", "3").exits(3)
		waits := e.start(t, "hold", key, "--lease", calm)
		waits.writes("stderr", "waiting for "+key)
		waits.signal(syscall.SIGINT)
		waits.exits(130, "interrupted by SIGINT")
		e.run(t, "break", key, "--yes").exits(0)
		p.exits(79, "broken by somebody else")

		e.start(t, "hold", key, "--lease", calm, "--ttl", "300ms").exits(124, "--ttl was reached")
		free(t, e, key)

		p = e.start(t, "hold", key, "--lease", "10s")
		p.held(e, key)
		e.cut()
		p.exits(79, " lost: ")
	})
}

// TestTerminalHold checks that Ctrl-D ends hold, which goes on in the background.
func TestTerminalHold(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		w.enter(`holdfast hold %s; echo "status $?"`, key)
		await(t, func() bool { return e.inspect(t, key).Held }, "it never holds the lock")
		w.press("C-d")
		w.shows("status 0")
		w.clear()
		w.enter(`holdfast hold %s & echo $! >$DIR/pid`, key)
		pid := w.pid("pid")
		await(t, func() bool { return e.inspect(t, key).Held }, "it never holds the lock")
		time.Sleep(200 * time.Millisecond)
		if s := state(pid); s != "S" && s != "R" {
			t.Errorf("in the background it is in state %q", s)
		}
		w.enter(`kill %%1; wait %%1; echo "status $?"`)
		w.shows("status 0")
		free(t, e, key)
	})
}

// TestWaiting tests the messages about a wait: one for each change, and none with -q.
func TestWaiting(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		lock := e.acquire(t, key, "holder 1")
		loud := e.start(t, "run", key, "--lease", calm, "--", "true")
		place := ""
		if e.name == "zookeeper" {
			place = ", place 1 of 1"
		}
		loud.writes("stderr", "holdfast: waiting for "+key+place+", held by holder 1 (token "+lock.Token().String()+")")
		quiet := e.start(t, "run", key, "-v", "-q", "--lease", calm, "--", "true")
		quiet.asks()
		time.Sleep(1500 * time.Millisecond)
		release(t, lock)
		loud.exits(0)
		quiet.exits(0)
		if n := strings.Count(read(loud.stderr), "\n"); n != 1 {
			t.Errorf("it says\n%s", read(loud.stderr))
		}
		if strings.Contains(read(quiet.stderr), "waiting for") {
			t.Errorf("with -q it says\n%s", read(quiet.stderr))
		}
	})
}

// TestTerminalWaiting tests the line that shows whom run waits for: it is updated in place, then cleared.
func TestTerminalWaiting(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		lock := e.acquire(t, key, "holder-1")
		w.enter(`clear; holdfast run %s -- echo it has run; echo "status $?"`, key)
		const holder = ", held by holder-1"
		line := "holdfast: waiting for " + key
		if e.name == "dynamodb" {
			w.shows(line + holder)
		} else {
			w.shows(line + ", place 1 of 1")
			w.resize(200, 40)
			w.shows(line + ", place 1 of 1" + holder)
			e.wait(t, key, "another")
			w.shows(line + ", place 1 of 2" + holder)
		}
		if text := w.screen(); strings.Count(text, "waiting for") != 1 {
			t.Errorf("the terminal shows\n%s", text)
		}
		release(t, lock)
		w.shows("it has run\nstatus 0")
		if text := w.screen(); strings.Contains(text, "waiting for") {
			t.Errorf("what is left is\n%s", text)
		}
	})
}
