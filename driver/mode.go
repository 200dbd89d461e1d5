package driver

import "fmt"

// A Mode says which grants of a key can be live together. The zero Mode excludes all.
//
//	Mode{}                       an exclusive lock
//	Mode{Shared: true}           a shared lock, of a reader
//	Mode{Shared: true, Limit: n} a permit of a semaphore of n
//
// One rule decides on every engine: a request waits for every earlier request that does not share with it, and for a place among at
// most Limit that do.
type Mode struct {
	Shared bool // shares the key with other grants of the same Mode
	Limit  int  // at most so many grants of the Mode are live at a time; 0: no limit
}

// Option is what asked for the mode, as in the Field of an [InvalidError]: "shared" or "limit"; "" for an exclusive one.
func (m Mode) Option() string {
	switch {
	case m.Limit != 0:
		return "limit"
	case m.Shared:
		return "shared"
	}
	return ""
}

// SharesWith reports whether grants of the two modes can be live together, as far as Limit allows: readers with readers, permits with
// permits of the same limit.
func (m Mode) SharesWith(other Mode) bool { return m.Shared && m == other }

// String names the mode for a message: "lock", "reader" or "permit of n".
func (m Mode) String() string {
	switch {
	case m.Limit != 0:
		return fmt.Sprintf("permit of %d", m.Limit)
	case m.Shared:
		return "reader"
	}
	return "lock"
}
