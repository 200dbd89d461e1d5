package zklock

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// Names is a form of node names. It decides which other programs respect this client's locks. The client itself respects every known form.
type Names int

const (
	// CuratorNames are _c_<guid>-lock-<sequence>; for shared locks _c_<guid>-shared-lock-<sequence>; for permits
	// _c_<guid>-permit-<limit>-lock-<sequence>, which other programs take for exclusive locks. Curator's InterProcessMutex and
	// LeaderSelector, go-zookeeper's Lock, and kazoo's Lock with extra_lock_patterns=["lock-"] share locks in this form. Curator and kazoo
	// do not exclude each other, since Curator ignores kazoo's own nodes. Curator's read-write locks and LeaderLatch ignore these names.
	CuratorNames Names = iota
	// KazooNames are <guid>__lock__<sequence>; for shared locks <guid>__rlock__<sequence>, which kazoo's WriteLock and ReadLock
	// respect, and its Lock ignores; for permits <guid>-permit-<limit>__lock__<sequence>, which kazoo takes for exclusive locks. An
	// unmodified kazoo Lock and go-zookeeper's Lock share locks in this form, but not with each other, since kazoo ignores
	// go-zookeeper's nodes; Curator does not.
	KazooNames
	// CuratorLatchNames are _c_<guid>-latch-<sequence>, for an election in which Curator's LeaderLatch stands too, on a path with
	// candidates only. Other programs do not respect this form. Permits and shared locks are refused.
	CuratorLatchNames
	// CuratorRWNames are _c_<guid>-__WRIT__<sequence>; for shared locks _c_<guid>-__READ__<sequence>; for permits
	// _c_<guid>-permit-<limit>-__WRIT__<sequence>. Only Curator's InterProcessReadWriteLock shares locks in this form; it takes a
	// permit for a writer. A client with these names takes no lock on a path where it finds nodes of another form: see [NamesError].
	CuratorRWNames

	namesEnd
)

// form is what there is to know of a form of names.
type form struct {
	name   string // of the form itself
	front  string // stands before the guid
	dashed bool   // the guid has its dashes

	lock, reader, permit string // stand behind the guid; "" if a node cannot have that mode

	persistent bool              // parents are not containers
	strict     bool              // exclusive locks, too, are refused behind a node of another family
	seenBy     []sequence.Family // these programs see nodes of this form, as far as is known: kazoo sees Curator's if it was told to
}

var forms = [namesEnd]form{
	CuratorNames: {
		name: "curator", front: "_c_", dashed: true,
		lock: "-lock-", reader: "-shared-lock-", permit: "-permit-%d-lock-",
		seenBy: []sequence.Family{sequence.Others, sequence.Mutex, sequence.Kazoo, sequence.Holdfast},
	},
	KazooNames: {
		name: "kazoo",
		lock: "__lock__", reader: "__rlock__", permit: "-permit-%d__lock__", persistent: true,
		seenBy: []sequence.Family{sequence.Others, sequence.Kazoo, sequence.Holdfast},
	},
	CuratorLatchNames: {
		name: "curator-latch", front: "_c_", dashed: true,
		lock: "-latch-",
	},
	CuratorRWNames: {
		name: "curator-rw", front: "_c_", dashed: true,
		lock: "-__WRIT__", reader: "-__READ__", permit: "-permit-%d-__WRIT__", strict: true,
		seenBy: []sequence.Family{sequence.CuratorRW},
	},
}

// String returns the name of the form.
func (n Names) String() string { return n.form().name }

func (n Names) form() *form {
	if n < 0 || n >= namesEnd {
		n = CuratorNames
	}
	return &forms[n]
}

// prefix returns the part of a node's name that comes before the sequence; "" if a node cannot have the mode.
func (f *form) prefix(guid string, mode driver.Mode) string {
	after := f.lock
	switch {
	case mode.Limit > 0 && f.permit != "":
		after = fmt.Sprintf(f.permit, mode.Limit)
	case mode.Shared:
		after = f.reader
	}
	if after == "" {
		return ""
	}
	return f.front + guid + after
}

// A NamesError says that a key is in use by a program that ignores the znodes of this client, because of their names, and so would
// take a lock beside it. A path belongs to programs that see each other's znodes; see [Options.Names]. It matches holdfast.ErrNames.
//
// Shared locks, permits, and all locks of a client with CuratorRWNames fail in this way. Another exclusive lock waits for all znodes
// that it finds, of any form.
type NamesError struct {
	Key   string
	Node  string // the name of a znode of such a program
	Names Names  // those of this client
}

// Error implements error.
func (e *NamesError) Error() string {
	return fmt.Sprintf("%q is in use by a program that ignores names of the form %q: it has the node %q", e.Key, e.Names, e.Node)
}

// Unwrap makes errors.Is match holdfast.ErrNames.
func (e *NamesError) Unwrap() error { return driver.ErrNames }

// fits refuses a request behind a node of a program that ignores this client's names. A reader or permit of holdfast behind another node
// is waited for instead: if that other node is such a program's, its own client refuses it.
func (e *engine) fits(req *driver.Request, ahead []entry) error {
	f := e.opts.Names.form()
	if !req.Mode.Shared && !f.strict {
		return nil
	}
	for i, x := range ahead {
		family := sequence.FamilyOf(x.name)
		if !slices.Contains(f.seenBy, family) && (i == 0 || family != sequence.Holdfast) {
			return &NamesError{Key: req.Key, Node: x.name, Names: e.opts.Names}
		}
	}
	return nil
}

// newGUID returns a random UUID (RFC 9562, version 4), as it stands in names of this form. A bound above 0 takes the place of some
// digits: see bound.go.
func (f *form) newGUID(bound int64) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	if bound > 0 {
		h = fmt.Sprintf("%0*x", boundLen, bound) + h[boundLen:len(h)-len(boundMark)] + boundMark
	}
	if !f.dashed {
		return h
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// encodeData makes a node's data: the owner, then NUL and the user's data if there is any. kazoo shows it as the contender's identifier.
func encodeData(owner string, data []byte) []byte {
	b := []byte(owner)
	if len(data) > 0 {
		b = append(append(b, 0), data...)
	}
	return b
}

// decodeData is the inverse of encodeData. In the data of another program, short text is an owner, and the rest is data. A wish is neither.
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
