package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// copied is a copy of the repository, in which mutants are made.
type copied struct {
	from    string // the top of the repository
	dir     string
	scratch string // for what the simulations keep
	seed    uint64
}

// make copies what git knows of, and what is new and not ignored.
func (c *copied) make(ctx context.Context) error {
	top, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	c.from = strings.TrimSpace(top)
	list, err := git(ctx, "-C", c.from, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(c.dir, name), filepath.Join(c.from, name)); err != nil {
			return err
		}
	}
	return nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// copyFile copies a file, unless it has been deleted and git does not know that yet.
func copyFile(to, from string) error {
	info, err := os.Lstat(from)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !info.Mode().IsRegular():
		return nil // a repository within this one
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm()|0o200)
}

// binary is the name of the test binary.
func (c *copied) binary() string { return filepath.Join(c.scratch, "mutant.test") }

// build compiles the tests of a folder as the copy is now.
func (c *copied) build(ctx context.Context, folder string) error {
	if err := os.MkdirAll(c.scratch, 0o755); err != nil {
		return err
	}
	if out, err := c.goTest(ctx, "-c", "-o", c.binary(), "./"+folder); err != nil {
		return fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	return nil
}

// goTest runs "go test" in the copy.
func (c *copied) goTest(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test"}, args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(c.dir, "go.work"), "HOLDFAST_SCENES=fake")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it ends its children
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

// score makes a mutant, runs the simulation or the suite and the tests on it, and undoes it.
func (c *copied) score(ctx context.Context, m *mutant, f *flags) (r result, err error) {
	undo, err := m.apply(c.dir)
	defer func() {
		if failed := undo(); err == nil {
			err = failed
		}
	}()
	if err != nil {
		return result{}, err
	}
	if f.cpu > 0 {
		if r, err = c.until(ctx, runOf(f.suite, m.Engine), f.cpu); err != nil {
			return r, err
		}
	}
	if f.tests {
		r.test, _, err = c.test(ctx)
	}
	return r, err
}
