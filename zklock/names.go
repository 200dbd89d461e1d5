package zklock

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// Names is a form of node names. It decides which other programs respect this client's
// locks. The client itself respects every known form.
type Names int

const (
	// CuratorNames is the form _c_<guid>-lock-<sequence>. Curator's
	// InterProcessMutex, go-zookeeper's Lock, and kazoo's Lock with
	// extra_lock_patterns=["lock-"] share locks in this form; but not Curator
	// and kazoo with each other, as Curator passes over kazoo's own nodes.
	// Curator's LeaderSelector does too; its read-write locks and LeaderLatch do
	// not wait for these names, nor for the others.
	CuratorNames Names = iota
	// KazooNames is the form <guid>__lock__<sequence>. An unmodified kazoo Lock
	// and go-zookeeper's Lock share locks in this form, but not with each other,
	// as kazoo passes over go-zookeeper's nodes; Curator does not.
	KazooNames
)

// String returns the name of the form.
func (n Names) String() string {
	if n == KazooNames {
		return "kazoo"
	}
	return "curator"
}

// name returns the part of a node's name that comes before the sequence.
func (n Names) name(guid string) string {
	if n == KazooNames {
		return n.guid(guid) + "__lock__"
	}
	return "_c_" + n.guid(guid) + "-lock-"
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
// programs have written: short text is an owner, the rest is data.
func decodeData(b []byte) (owner string, data []byte) {
	name, rest, found := bytes.Cut(b, []byte{0})
	if len(name) == 0 || len(name) > holdfast.MaxOwner || !utf8.Valid(name) {
		return "", b
	}
	if !found || len(rest) == 0 {
		return string(name), nil
	}
	return string(name), rest
}
