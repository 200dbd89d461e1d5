package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// The demo starts itself as its workers, and so does its test.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
		return
	}
	os.Exit(m.Run())
}

// The demo checks itself, so the test only runs it.
func TestDemo(t *testing.T) {
	// go-zookeeper has data races on reconnecting, which workers do here.
	// Other tests look for races of our own.
	t.Setenv("GORACE", "exitcode=0 log_path="+filepath.Join(t.TempDir(), "race"))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := play(ctx); err != nil {
		t.Fatal(err)
	}
}
