package cli_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestElectTerminal tests the terminal over several terms: each command gets it, and Ctrl-Z and Ctrl-C work in
// the second candidacy as in the first.
func TestElectTerminal(t *testing.T) {
	eachTerminal(t, func(t *testing.T, e *engine, w *terminal, key string) {
		w.enter(`holdfast elect %s -- sh -c 'echo $$ >$DIR/pid; echo "question $HOLDFAST_TOKEN"; read x; echo "answer was $x"; [ "$x" != bad ]'; echo "status $?"`, key)
		for _, answer := range []string{"one", "two"} {
			w.shows("\nquestion")
			w.enter("%s", answer)
			w.shows("\nanswer was " + answer)
			await(t, func() bool { return strings.Count(w.screen(), "\nquestion") > strings.Count(w.screen(), "\nanswer") }, "the command does not run again")
		}
		pid := w.pid("pid")
		w.suspend(pid)
		w.enter(`fg; echo "status $?"`)
		await(t, func() bool { return state(pid) == "S" }, "the command does not go on")
		client, ctx, granted := e.dial(t, "the other"), limited(t), make(chan *holdfast.Lock, 1)
		go func() {
			lock, err := client.Acquire(ctx, key)
			if err != nil {
				t.Error(err)
			}
			granted <- lock
		}()
		for len(granted) == 0 { // the tool may be faster
			terms := strings.Count(w.screen(), "\nquestion")
			w.enter("three")
			await(t, func() bool { return len(granted) > 0 || strings.Count(w.screen(), "\nquestion") > terms }, "no client has the key")
		}
		other := <-granted
		if other == nil {
			return
		}
		w.shows("\nanswer was three")
		w.shows("standing for " + key + " again")
		w.shows("waiting for " + key)
		w.shows(", held by the other")
		w.press("C-z")
		w.shows("Stopped")
		w.prompts()
		w.clear()
		w.enter(`fg; echo "status $?"`)
		w.shows("waiting for " + key)
		w.shows(", held by the other")
		release(t, other)
		w.shows("\nquestion")
		w.press("C-c")
		w.shows("status 130\n")
		w.prompts()
		free(t, e, key)
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

// TestTerminalCompletion tests Tab in bash, for a command and for a held key.
func TestTerminalCompletion(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		const library = "/usr/share/bash-completion/bash_completion"
		if _, err := os.Stat(library); err != nil {
			t.Fatalf("bash-completion is missing; \"make setup\" installs it: %v", err)
		}
		key := newKey(t)
		e.acquire(t, key, "the holder")
		w := newTerminal(t, e)
		w.enter("source " + library + "; source <(holdfast completion bash)")
		w.prompts()
		w.clear()
		w.tmux("send-keys", "-l", "holdfast sho")
		w.press("Tab")
		w.shows("holdfast show")
		w.tmux("send-keys", "-l", key[:len(key)-1])
		w.press("Tab")
		w.shows("holdfast show " + key)
		w.press("Enter")
		w.shows("the holder")
	})
}
