package cli_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestShared checks that commands with --shared run together and exclude those without, and that show, ask and break
// know each of them.
func TestShared(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		client := e.dial(t, "reader")
		lock, err := client.Acquire(limited(t), key, holdfast.WithShared())
		must(t, err)
		e.run(t, "run", key, "--shared", "--try", "--", "true").exits(0)
		e.run(t, "run", key, "--try", "--", "true").exits(75, "is held by")
		p := e.start(t, "hold", key, "--shared", "--owner", "second")
		p.writes("stdout", "\n")
		shown := e.run(t, "show", key).exits(0)
		if text := read(shown.stdout); strings.Count(text, "held by") != 2 || !strings.Contains(text, "second") || !strings.Contains(text, "by 2") {
			t.Errorf("show prints %q", text)
		}
		if text := e.run(t, "ls", key).output(); !strings.Contains(text, "reader and 1 more") {
			t.Errorf("ls prints %q", text)
		}
		e.run(t, "break", key, "--yes").exits(64, "--token")
		e.run(t, "ask", key).exits(0, "").prints("asked reader and 1 more (reader), which hold " + key + "\n")
		closes(t, "the holder is asked", lock.Asked())
		e.run(t, "break", key, "--yes", "--token", lock.Token().String()).exits(0, "").prints(
			"broke the lock of " + key + ", which reader held with token " + lock.Token().String() + "\n",
		)
		closes(t, "the lock ends", lock.Done())
		e.run(t, "break", key, "--yes", "--all").exits(0)
		p.exits(79)
	})
}

// TestPermits checks that a command holds one of a limited number of permits, and excludes other numbers and locks.
func TestPermits(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.start(t, "hold", key, "--limit", "2", "--owner", "first")
		p.writes("stdout", "\n")
		e.run(t, "run", key, "--limit", "2", "--try", "--", "true").exits(0)
		e.run(t, "run", key, "--limit", "3", "--try", "--", "true").exits(75, "permit of 2")
		e.run(t, "run", key, "--try", "--", "true").exits(75, "permit of 2")
		second := e.start(t, "hold", key, "--limit", "2", "--owner", "second")
		second.writes("stdout", "\n")
		e.run(t, "run", key, "--limit", "2", "--try", "--", "true").exits(75, "held by")
		if text := e.run(t, "show", key).output(); strings.Count(text, "held by") != 2 || !strings.Contains(text, "2 of 2") {
			t.Errorf("show prints %q", text)
		}
		if text := e.run(t, "ls", key).output(); !strings.Contains(text, "first and 1 more") {
			t.Errorf("ls prints %q", text)
		}
		info, err := e.dial(t, "observer").Inspect(limited(t), key)
		must(t, err)
		e.run(t, "break", key, "--yes", "--token", info.Holders[1].Token.String()).exits(0)
		second.exits(79)
		p.signal(syscall.SIGTERM)
		p.exits(0)
		e.run(t, "run", key, "--limit", "3", "--try", "--", "true").exits(0)
	})
}
