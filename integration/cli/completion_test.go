package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// TestCompletion checks that completion quietly offers keys, and none if the engine does not answer.
func TestCompletion(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		e.acquire(t, key, "")
		prefix := key[:len(key)-1]
		for _, args := range [][]string{
			{"show", prefix}, {"break", prefix}, {"ls", prefix}, {"run", "-k", prefix}, {"run", "--try", "--key", prefix}, {"run", prefix}, {"hold", prefix}, {"observe", prefix}, {"ask", prefix}, {"elect", prefix},
		} {
			if first, _, _ := strings.Cut(e.run(t, append([]string{"__complete"}, args...)...).output(), "\n"); first != key { // it waits two seconds at most
				verdict.Fatalf(t, "%q is completed by %q, want %q", args, first, key)
			}
		}
		e.cut()
		if got := e.start(t, "__complete", "show", prefix).output(); !strings.HasPrefix(got, ":") {
			t.Errorf("without an engine it is completed by %q", got)
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
