package child

import (
	"os"
	"path/filepath"
	"time"
)

// NewDir makes a temporary directory for one server, with a lock that lasts as long as this process. A test process that is
// killed cannot remove its directories, so the next one that makes a directory with the same prefix does.
func NewDir(prefix string) (string, *os.File, error) {
	sweepDirs(prefix)
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, lock, nil
}

// sweepDirs removes directories whose process has ended. It passes over young ones, which may not be locked yet.
func sweepDirs(prefix string) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range dirs {
		st, err := os.Stat(dir)
		if err != nil || time.Since(st.ModTime()) < time.Minute {
			continue
		}
		if lock, err := lockFile(filepath.Join(dir, "lock")); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}
