package npmcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// What the tests use.
var (
	// Dynalite is a server with the API of DynamoDB.
	Dynalite = []string{"dynalite@4.0.0"}
	// LockClient is the npm client that locks are shared with, and the SDK that it needs.
	LockClient = []string{"dynamodb-lock-client@0.7.3", "aws-sdk@2.1693.0"}
)

// installPatience bounds an installation for which the caller's ctx has no nearer deadline.
const installPatience = 5 * time.Minute

// ErrNoNPM: a package is not in the cache, and there is no npm to install it with. The text says what to do about it.
var ErrNoNPM = errors.New("no npm in PATH: run \"make setup\" (it installs Debian's nodejs and npm when run as root), or " +
	"install Node.js 20 or newer")

// Modules returns the node_modules folder that holds the packages and what they depend on, each package given as name@version
// with an exact version. It installs them if necessary, or waits for the process that does. Callers must not write to the
// folder.
func Modules(ctx context.Context, packages ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("npm packages: %w", err)
	}
	dir := filepath.Join(cache, "holdfast", "npm", strings.Join(packages, "+"))
	modules := filepath.Join(dir, "node_modules")
	if isDir(modules) {
		return modules, nil
	}
	ctx, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	if err := install(ctx, dir, packages); err != nil {
		return "", fmt.Errorf("npm packages %s: %w", strings.Join(packages, " "), err)
	}
	return modules, nil
}

// install makes dir, complete or not at all.
func install(ctx context.Context, dir string, packages []string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return ErrNoNPM
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := awaitLock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if isDir(dir) {
		return nil // by the process that had the lock
	}
	unfinished := dir + ".new"
	// The process that left it behind no longer has the lock.
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	if err := os.Mkdir(unfinished, 0o755); err != nil {
		return err
	}
	// Without it, npm would look for a project in the directories above.
	manifest := []byte(`{"private": true}` + "\n")
	if err := os.WriteFile(filepath.Join(unfinished, "package.json"), manifest, 0o644); err != nil {
		return err
	}
	args := append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--no-save"}, packages...)
	if err := run(ctx, unfinished, lock, npm, args...); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}

// run runs a command in a directory. When ctx ends first, it kills the command with all its children. The command inherits
// the lock: it continues if this process is killed, and no other process may use the directory until it ends.
func run(ctx context.Context, dir string, lock *os.File, name string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w; it said:\n%s", filepath.Base(name), strings.Join(args, " "), err, out.Bytes())
	}
	return nil
}

func awaitLock(ctx context.Context, path string) (*os.File, error) {
	for {
		lock, err := child.LockFile(path)
		if !errors.Is(err, child.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
