//go:build unix

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Why a command cannot be run.
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("command not executable")
)

// Find looks for a command as execvp(3) does: in PATH, unless its name has a
// slash. Errors: ErrNotFound, ErrNotExecutable.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // PATH has a relative directory: that is the user's affair
		return path, nil
	case strings.Contains(name, "/"):
		return "", Explain(err)
	}
	// Not an executable; but perhaps there is something of that name.
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return "", ErrNotExecutable
		}
	}
	return "", ErrNotFound
}

// Explain says which of the two an error of the operating system means.
func Explain(err error) error {
	reason := err
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		reason = e.Err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNotFound
	}
	if e := (*fs.PathError)(nil); errors.As(reason, &e) {
		reason = e.Err
	}
	return fmt.Errorf("%w: %w", ErrNotExecutable, reason)
}
