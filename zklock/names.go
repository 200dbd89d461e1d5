package zklock

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
)

// Names is a form of node names. It decides which other programs respect this client's
// locks. The client itself respects every known form.
type Names int

const (
	// CuratorNames is the form _c_<guid>-lock-<sequence>, and for shared locks
	// _c_<guid>-shared-lock-<sequence>, which other programs take for exclusive ones. Curator's
	// InterProcessMutex, go-zookeeper's Lock, and kazoo's Lock with
	// extra_lock_patterns=["lock-"] share locks in this form, and so does
	// Curator's LeaderSelector. Curator and kazoo do not exclude each other, as
	// Curator passes over kazoo's own nodes. Curator's read-write locks and
	// LeaderLatch do not wait for these names.
	CuratorNames Names = iota
	// KazooNames is the form <guid>__lock__<sequence>, and for shared locks
	// <guid>__rlock__<sequence>, which kazoo's WriteLock and ReadLock see and its Lock does
	// not. An unmodified kazoo Lock
	// and go-zookeeper's Lock share locks in this form, but not with each other,
	// as kazoo passes over go-zookeeper's nodes; Curator does not.
	KazooNames
	// CuratorLatchNames is the form _c_<guid>-latch-<sequence>. Curator's LeaderLatch
	// shares an election in this form, and nobody else does: for an election in which
	// LeaderLatch stands too, on a path with nothing but candidates.
	CuratorLatchNames
	// CuratorRWNames is the form _c_<guid>-__WRIT__<sequence>, and for shared locks
	// _c_<guid>-__READ__<sequence>. Curator's InterProcessReadWriteLock shares locks in this
	// form, and nobody else does. A client with these names takes no lock on a path where it
	// finds nodes of another form: see [NamesError].
	CuratorRWNames

	namesEnd
)

// String returns the name of the form.
func (n Names) String() string {
	switch n {
	case KazooNames:
		return "kazoo"
	case CuratorLatchNames:
		return "curator-latch"
	case CuratorRWNames:
		return "curator-rw"
	}
	return "curator"
}

// name returns the part of a node's name that comes before the sequence.
func (n Names) name(guid string, shared bool) string {
	switch {
	case n == KazooNames && shared:
		return n.guid(guid) + "__rlock__"
	case n == KazooNames:
		return n.guid(guid) + "__lock__"
	case n == CuratorLatchNames:
		return "_c_" + guid + "-latch-"
	case n == CuratorRWNames && shared:
		return "_c_" + guid + "-__READ__"
	case n == CuratorRWNames:
		return "_c_" + guid + "-__WRIT__"
	case shared:
		return "_c_" + guid + "-shared-lock-"
	}
	return "_c_" + guid + "-lock-"
}

// lease returns the part of the name of a permit's node that comes before the sequence.
func (n Names) lease(guid string) string {
	if n == KazooNames {
		return n.guid(guid) + "__lease__"
	}
	return "_c_" + guid + "-lease-"
}

// guid returns a guid as it stands in names of this form.
func (n Names) guid(guid string) string {
	if n == KazooNames {
		return strings.ReplaceAll(guid, "-", "")
	}
	return guid
}

// newGUID returns a random UUID (RFC 9562, version 4) in its 36-character form.
func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

const guidLen = 32 // in hexadecimal digits

// guidIn returns the guid in a node's name, in whatever form; "" if there is none.
func guidIn(name string) string {
	name = strings.ReplaceAll(strings.TrimPrefix(name, "_c_"), "-", "")
	if len(name) < guidLen || strings.Trim(name[:guidLen], "0123456789abcdef") != "" {
		return ""
	}
	return name[:guidLen]
}

// markedGUID returns a guid for a node of a client that reclaims under an owner name. To
// other programs it is as random as any. It ends with a mark of the name, by which others of
// that name find the node whatever its data; it begins with what all such nodes of the
// client begin with.
func (e *engine) markedGUID(owner string) string {
	guid := newGUID()
	return e.mark + guid[len(e.mark):len(guid)-markLen] + markOf(owner)
}

// markLen is the length of a mark, which in both forms of names is of one piece.
const markLen = 12

func markOf(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:])[:markLen]
}

// marked reports whether a node's name has the mark of an owner name.
func marked(name, owner string) bool { return strings.Contains(name, markOf(owner)) }

// markedBySelf reports whether a name with a mark is that of a node of this client.
func (e *engine) markedBySelf(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "_c_"), e.mark)
}

// encodeData makes a node's data: the owner, then NUL and the user's data if
// there is any. kazoo shows what is there as the contender's identifier.
func encodeData(owner string, data []byte) []byte {
	b := []byte(owner)
	if len(data) > 0 {
		b = append(append(b, 0), data...)
	}
	return b
}

// decodeData is the inverse of encodeData, and makes the best of what other
// programs have written: short text is an owner, the rest is data. A wish that the
// holder let go is neither: see wish.
func decodeData(b []byte) (owner string, data []byte) {
	b = withoutWish(b)
	name, rest, found := bytes.Cut(b, []byte{0})
	if len(name) == 0 || len(name) > driver.MaxOwner || !utf8.Valid(name) {
		return "", b
	}
	if !found || len(rest) == 0 {
		return string(name), nil
	}
	return string(name), rest
}
