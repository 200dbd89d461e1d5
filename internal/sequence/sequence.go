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

// A Family is the programs that see each other's nodes in a queue, by their names.
type Family int

// The families. A program of another one passes over these nodes: Curator's mutexes, its
// read-write locks and its latches do so among themselves.
const (
	Others       Family = iota // the forms of ZooKeeper's documentation
	Mutex                      // Curator's mutex, and programs that share locks with it
	CuratorRW                  // Curator's read-write lock
	CuratorLatch               // Curator's LeaderLatch
	Kazoo                      // kazoo's lock and read-write lock
	Holdfast                   // holdfast's readers and permits in a queue of the family Mutex: their clients see all nodes
)

// A kind is what the end of a name, before the number, tells of a contender.
type kind struct {
	end    string
	family Family
	reader bool
}

// kinds are the known kinds, of Curator's mutex, read-write lock and latch, kazoo's lock and read-write lock, go-zookeeper's lock,
// and the recipes in ZooKeeper's own documentation. The first that fits counts: a word such as "thread-" ends in a marker, too.
var kinds = []kind{
	{"__WRIT__", CuratorRW, false},
	{"__READ__", CuratorRW, true},
	{"__lock__", Kazoo, false},
	{"__rlock__", Kazoo, true},
	{"latch-", CuratorLatch, false},
	{"-shared-lock-", Holdfast, true},
	{"lock-", Mutex, false},
	{"-read-", Others, true},
	{"read-", Others, false},
	{"write-", Others, false},
}

// markers are the shortest ends of all kinds.
var markers = []string{"lock-", "latch-", "read-", "write-", "__lock__", "__rlock__", "__READ__", "__WRIT__"}

// Of returns the sequence number in the name of a child of a lock's znode; false if the
// child is no contender. A number has ten digits or, past the overflow, a sign and nine
// or ten. (Parsed by hand, because each look parses the name of every waiter.)
func Of(name string) (int64, bool) {
	front := numberless(name)
	digits := name[len(front):]
	switch n := len(digits); {
	case n == 10 && hasMarker(front):
	case n == 9 || n == 10:
		unsigned, ok := strings.CutSuffix(front, "-")
		if !ok || !hasMarker(unsigned) {
			return 0, false
		}
		digits = name[len(unsigned):]
	default:
		return 0, false
	}
	seq, err := strconv.ParseInt(digits, 10, 64)
	return seq, err == nil
}

// kindOf returns the kind of a name with a sequence number.
func kindOf(name string) kind {
	front := numberless(name)
	for _, front := range []string{front, strings.TrimSuffix(front, "-")} {
		if front == "read-" {
			return kind{"read-", Others, true}
		}
		for _, k := range kinds {
			if strings.HasSuffix(front, k.end) {
				return k
			}
		}
	}
	return kind{}
}

// Shared reports whether a name with a sequence number is that of a reader, which shares
// the lock with other readers.
func Shared(name string) bool { return kindOf(name).reader }

// FamilyOf returns the family of a name with a sequence number.
func FamilyOf(name string) Family {
	family := kindOf(name).family
	if family == Mutex && Limit(name) > 0 {
		return Holdfast
	}
	return family
}

// Downgrades reports whether a name with a sequence number is that of a writer that may
// leave a reader in its place, with its own number: Curator's write lock does so, from
// 5.5 on.
func Downgrades(name string) bool { return kindOf(name).end == "__WRIT__" && Limit(name) == 0 }

// Downgraded reports whether a name with a sequence number may be that of the reader that
// such a writer leaves: it is younger than its place in the queue says.
func Downgraded(name string) bool { return kindOf(name).end == "__READ__" }

// permit stands between the guid and the limit in the name of a permit.
const permit = "-permit-"

// Limit returns how many permits there are at a time, from the name of one; 0 for any other name. Only holdfast makes such names: with a
// guid before the word, and behind the limit what a lock has there. A name that differs in any of these is that of a lock.
func Limit(name string) int {
	guid, rest, ok := strings.Cut(numberless(name), permit)
	if !ok || guidOf(guid) == "" || guidOf(guid) != strings.ReplaceAll(strings.TrimPrefix(guid, "_c_"), "-", "") {
		return 0
	}
	end := max(0, strings.IndexAny(rest, "-_"))
	switch strings.TrimSuffix(rest[end:], "-") {
	case "-lock", "-lock-", "__lock__", "-__WRIT__":
	default:
		return 0
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil || n < 1 || strconv.Itoa(n) != rest[:end] {
		return 0
	}
	return n
}

// guidLen is the length of a guid in hexadecimal digits.
const guidLen = 32

// guidOf returns the digits of the guid at the beginning of a node's name, in any form of names; "" if there is none.
func guidOf(name string) string {
	name = strings.ReplaceAll(strings.TrimPrefix(name, "_c_"), "-", "")
	if len(name) < guidLen || strings.Trim(name[:guidLen], "0123456789abcdef") != "" {
		return ""
	}
	return name[:guidLen]
}

// numberless returns a name without the digits that it ends in.
func numberless(name string) string {
	n := len(name)
	for n > 0 && '0' <= name[n-1] && name[n-1] <= '9' {
		n--
	}
	return name[:n]
}

// hasMarker reports whether a name, as far as its sequence, ends in a marker.
func hasMarker(front string) bool {
	for _, m := range markers {
		if strings.HasSuffix(front, m) {
			return true
		}
	}
	return false
}
