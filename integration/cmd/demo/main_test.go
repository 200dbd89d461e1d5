package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// The demo starts itself as its workers, and so does its test.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
		return
	}
	os.Exit(verdict.Main(m.Run))
}

// The demo checks itself, so the test only runs it.
func TestDemo(t *testing.T) {
	// go-zookeeper has data races on reconnecting, which workers do here.
	// Other tests look for races of our own.
	t.Setenv("GORACE", "exitcode=0 atexit_sleep_ms=0 log_path="+filepath.Join(t.TempDir(), "race"))
	verdict.Begin(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// Long enough for a lock to outlast a stall of the machine.
	err := play(ctx, 8*time.Second)
	switch {
	case errors.Is(err, errWrong):
		t.Fatal(err)
	case err != nil:
		verdict.Fatalf(t, "%v", err)
	}
}
