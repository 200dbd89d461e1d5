// Package sequence reads the sequence numbers that order the contenders for a lock, and
// knows where ZooKeeper's counter ends.
package sequence

import (
	"math"
	"strconv"
	"strings"
)

// Last is where ZooKeeper's counter sticks (from 3.6 on): a signed 32-bit number
// that is the parent's cversion.
const Last = math.MaxInt32

// Warn is where warnings about that begin.
const Warn = Last - 1<<27

// writer marks Curator's write lock, as part of its read-write lock.
const writer = "__WRIT__"

// reader marks the nodes of the same that share a lock.
const reader = "__READ__"

// readers mark those of the markers that share a lock.
var readers = []string{"-shared-lock-", "-read-", "__rlock__", reader}

// markers precede the sequence number in every known form of a contender's name:
// Curator's mutex, read-write lock and latch, kazoo's lock and read-write lock,
// go-zookeeper's lock, and the recipes in ZooKeeper's own documentation. A word may end in
// one, such as "thread-": it stands in the queue, and shares nothing.
var markers = []string{"lock-", "latch-", "read-", "write-", "__lock__", "__rlock__", "__READ__", writer}

// Of returns the sequence number in the name of a child of a lock's znode; false if the
// child is no contender. A number has ten digits or, past the overflow, a sign and nine
// or ten. (Parsed by hand, because each look parses the name of every waiter.)
func Of(name string) (int64, bool) { return behind(markers, name) }

// These mark the permits of a semaphore: Curator's, and holdfast's beside kazoo's.
var (
	curatorLease = []string{"lease-"}
	kazooLease   = []string{"__lease__"}
)

// OfLease is Of for a permit of a semaphore, of either form.
func OfLease(name string) (int64, bool) {
	if seq, ok := OfCuratorLease(name); ok {
		return seq, true
	}
	return OfKazooLease(name)
}

// OfCuratorLease is OfLease for a permit of Curator's form.
func OfCuratorLease(name string) (int64, bool) { return behind(curatorLease, name) }

// OfKazooLease is OfLease for a permit beside kazoo's. Those of kazoo itself have no number.
func OfKazooLease(name string) (int64, bool) { return behind(kazooLease, name) }

// behind returns the sequence number that stands behind a marker.
func behind(markers []string, name string) (int64, bool) {
	front := numberless(name)
	digits := name[len(front):]
	switch n := len(digits); {
	case n == 10 && ends(front, markers):
	case n == 9 || n == 10:
		unsigned, ok := strings.CutSuffix(front, "-")
		if !ok || !ends(unsigned, markers) {
			return 0, false
		}
		digits = name[len(unsigned):]
	default:
		return 0, false
	}
	seq, err := strconv.ParseInt(digits, 10, 64)
	return seq, err == nil
}

// Shared reports whether a name with a sequence number is that of a reader, which shares
// the lock with others.
func Shared(name string) bool {
	front := numberless(name)
	unsigned := strings.TrimSuffix(front, "-")
	return ends(front, readers) || ends(unsigned, readers) || front == "read-" || unsigned == "read-"
}

// A Family is the programs that see each other's nodes in a queue, by their names.
type Family int

// The families. A program of another one passes over these nodes: Curator's mutexes, its
// read-write locks and its latches do so among themselves.
const (
	Others        Family = iota // whoever has the forms of ZooKeeper's documentation
	Mutex                       // Curator's mutex, and those who share locks with it
	CuratorRW                   // Curator's read-write lock
	CuratorLatch                // Curator's LeaderLatch
	Kazoo                       // kazoo's lock and read-write lock
	SharedMutexes               // holdfast's shared locks, in a queue of the family Mutex
)

// FamilyOf returns the family of a name with a sequence number.
func FamilyOf(name string) Family {
	front := numberless(name)
	for _, front := range []string{front, strings.TrimSuffix(front, "-")} {
		switch {
		case ends(front, []string{writer, reader}):
			return CuratorRW
		case ends(front, []string{"__lock__", "__rlock__"}):
			return Kazoo
		case strings.HasSuffix(front, "latch-"):
			return CuratorLatch
		case strings.HasSuffix(front, "-shared-lock-"):
			return SharedMutexes
		case strings.HasSuffix(front, "lock-"):
			return Mutex
		}
	}
	return Others
}

// Downgrades reports whether a name with a sequence number is that of a writer that may
// leave a reader in its place, with its own number: Curator's write lock does so, from
// 5.5 on.
func Downgrades(name string) bool {
	front := strings.TrimSuffix(numberless(name), "-")
	return strings.HasSuffix(front, writer)
}

// Downgraded reports whether a name with a sequence number may be that of the reader that
// such a writer leaves: it is younger than its place in the queue says.
func Downgraded(name string) bool {
	front := strings.TrimSuffix(numberless(name), "-")
	return strings.HasSuffix(front, reader)
}

// numberless returns a name without the digits that it ends in.
func numberless(name string) string {
	n := len(name)
	for n > 0 && '0' <= name[n-1] && name[n-1] <= '9' {
		n--
	}
	return name[:n]
}

// ends reports whether a name, as far as its sequence, ends in a marker.
func ends(front string, markers []string) bool {
	for _, m := range markers {
		if strings.HasSuffix(front, m) {
			return true
		}
	}
	return false
}
