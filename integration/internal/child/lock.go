package child

import (
	"errors"
	"os"
	"syscall"
)

// errLocked: the file is locked.
var errLocked = errors.New("locked by another process or by another user in this one")

// lockFile creates and locks a file without waiting. Closing the file unlocks it, and so does the end of this process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errLocked
	}
	// The previous owner may have removed the file after we opened it. Then our lock is on a file without a name.
	held, err1 := f.Stat()
	named, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(held, named) {
		f.Close()
		return nil, errLocked
	}
	return f, nil
}
