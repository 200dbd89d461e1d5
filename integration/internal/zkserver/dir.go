package zkserver

import (
	"os"
	"path/filepath"
	"time"
)

const dirPrefix = "holdfast-zk-"

// newDir makes a directory for one server, with a lock that lasts as long as this process. A test process that is killed
// cannot remove its directories, so the next one to start a server does.
func newDir() (string, *os.File, error) {
	sweepDirs()
	dir, err := os.MkdirTemp("", dirPrefix)
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
func sweepDirs() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
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
