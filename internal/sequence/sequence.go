// Package sequence reads the sequence numbers by which znodes stand in the queue
// for a lock, and knows where ZooKeeper's counter of them ends.
package sequence

import (
	"math"
	"strconv"
	"strings"
)

// Last is where ZooKeeper's counter sticks (from 3.6 on): a signed 32-bit number
// that is the parent's cversion.
const Last = math.MaxInt32

// Warn is where to begin to warn of that.
const Warn = Last - 1<<27

// writer marks Curator's write lock, as part of its read-write lock.
const writer = "__WRIT__"

// readers mark those of the markers that share a lock.
var readers = []string{"read-", "__rlock__", "__READ__"}

// markers are what stands before the sequence in every known form of a node that
// stands in the queue for a lock: Curator's mutex, read-write lock and latch,
// kazoo's lock and read-write lock, go-zookeeper's lock, and the recipes in
// ZooKeeper's own documentation.
var markers = []string{"lock-", "latch-", "read-", "write-", "__lock__", "__rlock__", "__READ__", writer}

// Of returns the sequence number in the name of a child of a lock's znode; false
// if that does not stand in the queue. A number has ten digits, or a sign and nine
// or ten, past the overflow. (Done by hand, as it is done for every waiter at every
// look.)
func Of(name string) (int64, bool) {
	front := strings.TrimRight(name, digitsOnly)
	digits := name[len(front):]
	switch n := len(digits); {
	case n == 10 && marked(front):
	case n == 9 || n == 10:
		unsigned, ok := strings.CutSuffix(front, "-")
		if !ok || !marked(unsigned) {
			return 0, false
		}
		digits = name[len(unsigned):]
	default:
		return 0, false
	}
	seq, err := strconv.ParseInt(digits, 10, 64)
	return seq, err == nil
}

// Shared reports whether a name in which Of finds a sequence is that of a reader, who
// shares the lock with others.
func Shared(name string) bool {
	front := strings.TrimRight(name, digitsOnly)
	return ends(front, readers) || ends(strings.TrimSuffix(front, "-"), readers)
}

// Downgrades reports whether a name in which Of finds a sequence is that of a writer who
// may have left a reader in its own place, with its own number, when it goes: Curator's
// write lock does so, from 5.5 on.
func Downgrades(name string) bool {
	front := strings.TrimSuffix(strings.TrimRight(name, digitsOnly), "-")
	return strings.HasSuffix(front, writer)
}

const digitsOnly = "0123456789"

// marked reports whether a name, as far as its sequence, ends in a marker.
func marked(front string) bool { return ends(front, markers) }

func ends(front string, markers []string) bool {
	for _, m := range markers {
		if strings.HasSuffix(front, m) {
			return true
		}
	}
	return false
}
