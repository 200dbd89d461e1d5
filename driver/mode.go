package driver

import "fmt"

// A Mode says with which other grants of its key a grant goes together. The zero Mode
// excludes all.
//
//	Mode{}                       an exclusive lock
//	Mode{Shared: true}           a shared lock, of a reader
//	Mode{Shared: true, Limit: n} a permit of a semaphore of n
//
// Exclusive and shared locks wait for each other, a semaphore is something else: see
// [MismatchError].
type Mode struct {
	Shared bool // goes together with other grants of the same Mode
	Limit  int  // at most so many at a time, the same number for all of them; 0: no limit
}

// Option is what asked for the mode, as in the Field of an [InvalidError]: "shared" or
// "limit"; "" for an exclusive one.
func (m Mode) Option() string {
	switch {
	case m.Limit != 0:
		return "limit"
	case m.Shared:
		return "shared"
	}
	return ""
}

// Excludes reports whether a grant of one mode keeps one of the other out, however few
// there are.
func (m Mode) Excludes(other Mode) bool { return !m.Shared || m != other }

// A MismatchError says that a key cannot be had in the wanted way while it is in use: as a
// semaphore of n permits it takes no locks, as a lock no permits, and no permits of
// another number. It is a holdfast.MismatchError.
type MismatchError struct {
	Key  string
	Have int // the permits of the semaphore that the key is; 0 if it is a lock
	Want int // the permits of the one that was asked for; 0 if that was a lock
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%q is in use as %s, and wanted as %s", e.Key, use(e.Have), use(e.Want))
}

// Unwrap makes errors.Is match ErrMismatch.
func (e *MismatchError) Unwrap() error { return ErrMismatch }

func use(limit int) string {
	if limit == 0 {
		return "a lock"
	}
	return fmt.Sprintf("a semaphore of %d", limit)
}
