//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

// TestGroupHasTheWholeGrace checks what becomes of a process whose shell has died of the SIGTERM that
// was meant for both: it has the grace for what it does at SIGTERM, and no longer.
func TestGroupHasTheWholeGrace(t *testing.T) {
	for _, test := range []struct {
		name, atTERM string
		grace        time.Duration
		cleans       bool
	}{
		{"in time", "sleep 0.5; : >clean; exit", time.Minute, true},
		{"never", "", 100 * time.Millisecond, false},
	} {
		dir := t.TempDir()
		script := "trap '" + test.atTERM + "' TERM; : >begun; while :; do sleep 0.05; done"
		if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "/bin/sh ./script; true")
		cmd.Dir, cmd.WaitDelay = dir, test.grace
		cleanUp := inGroup(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitFile(t, filepath.Join(dir, "begun"))
		cancel()
		_ = cmd.Wait()
		cleanUp()
		if _, err := os.Stat(filepath.Join(dir, "clean")); (err == nil) != test.cleans {
			t.Errorf("%s: it has cleaned up: %t, want %t", test.name, err == nil, test.cleans)
		}
		for end := time.Now().Add(time.Minute); !job.EmptyGroup(cmd.Process.Pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: some of the group are alive", test.name)
			}
		}
	}
}

// TestStoppedGroupHasItsGrace checks that a command that is stopped, as by the terminal, can do what it does at SIGTERM.
func TestStoppedGroupHasItsGrace(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "trap ': >clean; exit' TERM; kill -STOP $$; while :; do sleep 0.05; done")
	cmd.Dir, cmd.WaitDelay = dir, 30*time.Second
	cleanUp := inGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for stopped := syscall.WaitStatus(0); !stopped.Stopped(); {
		if _, err := syscall.Wait4(cmd.Process.Pid, &stopped, syscall.WUNTRACED, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
	cancel()
	_ = cmd.Wait()
	cleanUp()
	if _, err := os.Stat(filepath.Join(dir, "clean")); err != nil {
		t.Error("it was killed without having cleaned up")
	}
}

// awaitFile waits until there is a file.
func awaitFile(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there is no file %s", name)
		}
	}
}
