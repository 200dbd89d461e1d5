package npmcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// fakeNPM puts an npm into PATH that adds a line to a file and installs an empty folder for its last argument, and an empty
// cache in its place. It returns the path of the file.
func fakeNPM(t *testing.T, script string) string {
	t.Helper()
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	text := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>'%s'\n%s\n", calls, script)
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	return calls
}

func count(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	n := 0
	for _, c := range b {
		if c == '\n' {
			n++
		}
	}
	return n
}

func TestModulesInstallsOnce(t *testing.T) {
	calls := fakeNPM(t, "sleep 0.2; mkdir -p node_modules/thing")
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			dir, err := Modules(t.Context(), "thing@1.2.3")
			if err != nil {
				t.Error(err)
			} else if !isDir(filepath.Join(dir, "thing")) {
				t.Errorf("Modules = %s, which lacks the package", dir)
			}
		})
	}
	wg.Wait()
	if n := count(t, calls); n != 1 {
		t.Errorf("npm ran %d times for five concurrent callers, want once", n)
	}
	// Without npm, and so without a network.
	t.Setenv("PATH", t.TempDir())
	if _, err := Modules(t.Context(), "thing@1.2.3"); err != nil {
		t.Errorf("what is in the cache needs npm: %v", err)
	}
	if _, err := Modules(t.Context(), "thing@1.2.4"); !errors.Is(err, ErrNoNPM) {
		t.Errorf("another version: %v, want ErrNoNPM", err)
	}
}

func TestModulesLeavesNothingUnfinished(t *testing.T) {
	calls := fakeNPM(t, "mkdir -p node_modules/thing; exit 1")
	for want := 1; want <= 2; want++ {
		if dir, err := Modules(t.Context(), "thing@1.2.3"); err == nil {
			t.Fatalf("Modules = %s although npm has failed", dir)
		}
		if n := count(t, calls); n != want {
			t.Fatalf("npm ran %d times, want %d: a failed installation counts as one", n, want)
		}
	}
}

func TestModulesHonoursContext(t *testing.T) {
	fakeNPM(t, "sleep 1000; exit 0")
	for _, patience := range []time.Duration{0, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		// It would wait for npm's child, which has its output.
		if _, err := Modules(ctx, "thing@1.2.3"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Modules with a ctx of %v: %v, want context.DeadlineExceeded", patience, err)
		}
		cancel()
	}
	// The lock is free again.
	fakeNPM(t, "mkdir node_modules")
	if _, err := Modules(t.Context(), "thing@1.2.3"); err != nil {
		t.Error(err)
	}
}

func TestModulesWantsPinnedVersions(t *testing.T) {
	calls := fakeNPM(t, "mkdir node_modules")
	for _, p := range []string{"thing", "thing@^1.2.3", "thing@latest", "../thing@1.2.3", "--global@1.2.3"} {
		if _, err := Modules(t.Context(), p); err == nil {
			t.Errorf("Modules(%q) succeeded", p)
		}
	}
	if n := count(t, calls); n != 0 {
		t.Errorf("npm ran %d times", n)
	}
	if _, err := Modules(t.Context(), "@scope/thing@1.2.3"); err != nil {
		t.Error(err)
	}
}

func TestNodeFromNPMWhereTheSystemsIsTooOld(t *testing.T) {
	for name, node := range map[string]string{"old": "#!/bin/sh\necho v18.20.4\n", "broken": "#!/bin/sh\nexit 1\n"} {
		t.Run(name, func(t *testing.T) {
			fakeNPM(t, "mkdir -p node_modules")
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "node"), []byte(node), 0o755); err != nil {
				t.Fatal(err)
			}
			path := os.Getenv("PATH")
			t.Setenv("PATH", bin+":"+path)
			cached, err := Node(t.Context())
			if err != nil || filepath.Base(cached) != "node" || filepath.Dir(cached) == bin {
				t.Errorf("Node = %q, %v; want one from the cache", cached, err)
			}
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("HOME", t.TempDir())
			t.Setenv("PATH", bin)
			if _, err := Node(t.Context()); !errors.Is(err, ErrNoNode) || !errors.Is(err, ErrNoNPM) {
				t.Errorf("Node without npm: %v, want ErrNoNode and ErrNoNPM", err)
			}
			if err := os.WriteFile(filepath.Join(bin, "node"), []byte("#!/bin/sh\necho v20.1.0\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if got, err := Node(t.Context()); err != nil || got != filepath.Join(bin, "node") {
				t.Errorf("Node = %q, %v; want the new one in PATH", got, err)
			}
		})
	}
}
