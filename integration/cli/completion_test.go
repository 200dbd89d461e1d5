package cli_test

import (
	"os"
	"strings"
	"testing"
)

// TestCompletion checks that completion offers keys, quietly: none if the engine does not
// answer or if a key would be unsafe in a shell.
func TestCompletion(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		if _, err := e.dial(t, "").Acquire(limited(t), key); err != nil {
			t.Fatal(err)
		}
		prefix := key[:len(key)-1]
		for _, args := range [][]string{
			{"show", prefix}, {"break", prefix}, {"ls", prefix}, {"run", "-k", prefix}, {"run", "--try", "--key", prefix}, {"run", prefix}, {"hold", prefix},
		} {
			p := e.run(t, append([]string{"__complete"}, args...)...)
			p.exits(0)
			if first, _, _ := strings.Cut(read(p.stdout), "\n"); first != key {
				t.Errorf("%q is completed by %q, want %q", args, first, key)
			}
		}
		e.cut()
		p := e.start(t, "__complete", "show", prefix)
		p.exits(0)
		if got := read(p.stdout); !strings.HasPrefix(got, ":") {
			t.Errorf("without an engine it is completed by %q", got)
		}
	})
}

// TestCompletionScripts checks that there is a script for each shell.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		p := launch(t, nil, nil, "completion", shell)
		p.exits(0)
		p.says("")
		if !strings.Contains(read(p.stdout), "__complete") {
			t.Errorf("the script for %s completes nothing", shell)
		}
	}
}

// TestTerminalCompletion tests completion as a person uses it: Tab in bash, for a command
// and for a held key.
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
