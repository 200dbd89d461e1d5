package zklock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/sequence"
)

// A try creates its node only if nothing was in its way. By then it knows from the list of children which sequence number is still in
// time. It writes the next one, the bound, into the guid of the node. A node at its bound or beyond is void: other clients may have
// come between the list and the creation, so its own client gives the node up. All clients know that from the name alone, and ignore a void node from the moment of its
// creation. Other programs respect a void node until it is deleted.
//
// A bound only makes nodes void. Whether a node that is in time is granted depends on the list that follows its creation.

// boundMark ends each guid with a bound. No owner name has this mark: an owner name contains no NUL.
var boundMark = markOf("\x00bound")

// boundedGUID returns a guid with a bound: a UUID of version 8 (RFC 9562), which no library generates at random.
func boundedGUID(bound int64) string {
	guid := newGUID()
	return fmt.Sprintf("%08x", bound) + guid[8:14] + "8" + guid[15:len(guid)-markLen] + boundMark
}

// void reports whether a node was created at its bound or beyond.
func void(name string) bool {
	if !strings.Contains(name, boundMark) {
		return false
	}
	guid := sequence.GUID(name)
	if !strings.HasSuffix(guid, boundMark) || guid[12] != '8' {
		return false
	}
	seq, ok := sequence.Of(name)
	bound, err := strconv.ParseUint(guid[:8], 16, 32)
	return ok && err == nil && seq >= int64(bound)
}

// nextNumber returns the sequence number of the next child of a znode with this Stat. Cversion counts creations and deletions,
// and wraps around.
func nextNumber(stat *zk.Stat) int64 { return int64(uint32(stat.Cversion+stat.NumChildren) >> 1) }
