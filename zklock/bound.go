package zklock

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/sequence"
)

// A try creates its node only if no node blocks it. Its list of the queue tells the number of the next node. The guid of the try's
// node begins with the bound, the number after that. A node whose number has reached its bound is void: other clients may have come
// between the list and the creation, so its own client never holds the key with it, and deletes it. All clients know that from the
// name, and ignore a void node. Other programs respect a void node until it is deleted.

const (
	boundMark = "6aae72c7849a" // ends each guid with a bound; arbitrary, and of one piece with and without dashes
	boundLen  = 8              // length of a bound, in hexadecimal digits
)

// void reports whether the number of a node has reached the bound in its guid.
func void(name string) bool {
	front, _, marked := strings.Cut(strings.TrimPrefix(name, "_c_"), boundMark)
	if !marked || len(front) < boundLen {
		return false
	}
	bound, err := strconv.ParseUint(front[:boundLen], 16, 32)
	seq, numbered := sequence.Of(name)
	return err == nil && numbered && seq >= int64(bound)
}

// reclaims reports whether a node reclaims under an owner name.
func reclaims(name, owner string) bool {
	guid := strings.TrimPrefix(name, "_c_")
	return strings.HasPrefix(guid, fmt.Sprintf("%0*x", boundLen, reclaimBound(owner))) && strings.Contains(guid, boundMark)
}

// reclaimBound is the bound of a node that reclaims under an owner name: no number reaches it. See ownNode.whyMissing.
func reclaimBound(owner string) int64 { return 1<<31 | int64(crc32.ChecksumIEEE([]byte(owner))) }

// nextNumber returns the sequence number of the next child of a znode with this Stat. Cversion counts creations and deletions,
// and wraps around.
func nextNumber(stat *zk.Stat) int64 { return int64(uint32(stat.Cversion+stat.NumChildren) >> 1) }
