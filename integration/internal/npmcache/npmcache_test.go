package npmcache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
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
	return bytes.Count(b, []byte("\n"))
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
