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

// readers mark those of the markers that share a lock.
var readers = []string{"read-", "__rlock__", "__READ__"}

// markers precede the sequence number in every known form of a contender's name:
// Curator's mutex, read-write lock and latch, kazoo's lock and read-write lock,
// go-zookeeper's lock, and the recipes in ZooKeeper's own documentation.
var markers = []string{"lock-", "latch-", "read-", "write-", "__lock__", "__rlock__", "__READ__", writer}

// Of returns the sequence number in the name of a child of a lock's znode; false if the
// child is no contender. A number has ten digits or, past the overflow, a sign and nine
// or ten. (Parsed by hand, because each look parses the name of every waiter.)
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

// Shared reports whether a name with a sequence number is that of a reader, which shares
// the lock with others.
func Shared(name string) bool {
	front := strings.TrimRight(name, digitsOnly)
	return ends(front, readers) || ends(strings.TrimSuffix(front, "-"), readers)
}

// Downgrades reports whether a name with a sequence number is that of a writer that may
// leave a reader in its place, with its own number: Curator's write lock does so, from
// 5.5 on.
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
