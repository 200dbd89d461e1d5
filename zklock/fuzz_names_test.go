package zklock

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// How peers parse a child's name, each by its own source, for our two forms. (nodeForm is
// all of them: Curator's mutex, read-write lock and latch, kazoo's locks, go-zookeeper's,
// the documentation's recipes; the sequence is %010d of a signed 32-bit counter.)
var (
	nodeForm  = regexp.MustCompile(`(?s)^.*(?:lock-|latch-|read-|write-|__lock__|__rlock__|__READ__|__WRIT__)([0-9]{10}|-[0-9]{9,10})$`)
	kazooForm = regexp.MustCompile(`(?:__lock__|lock-)(-?\d{10})$`) // with extra_lock_patterns=["lock-"]
)

// curatorSequence is what Curator sorts by.
func curatorSequence(name string) string { return name[strings.LastIndex(name, "lock-")+len("lock-"):] }

// goZKSequence is what go-zookeeper sorts by.
func goZKSequence(name string) (int, error) {
	parts := strings.Split(name, "lock-")
	if len(parts) == 1 {
		parts = strings.Split(name, "__")
	}
	return strconv.Atoi(parts[len(parts)-1])
}

// FuzzNodeName tests which children are contenders: those, and only those, whose name has
// a form in the table of known ones, whatever else is in it. Every peer that must respect
// our names reads them back with the server's sequence number.
func FuzzNodeName(f *testing.F) {
	const guid = "9b2a0c1e-5d0f-4f43-8a59-0a6c7e1d2b3f"
	for _, name := range []string{
		"_c_" + guid + "-lock-0000000007", "_c_" + guid + "-latch-0000000008",
		"_c_" + guid + "-__READ__0000000009", "_c_" + guid + "-__WRIT__0000000010",
		"9b2a0c1e5d0f4f438a590a6c7e1d2b3f__lock__0000000011", "9b2a0c1e5d0f4f438a590a6c7e1d2b3f__rlock__0000000012",
		"guid-lock-0000000013", "guid-read-0000000014", "guid-write-0000000015", "x-72057594037927936-lock-0000000016",
		"_c_" + guid + "-lock--2147483648", "_c_" + guid + "-lock--000000001", "_c_short-lock-0000000001", "_c_", "_c_x",
		"lock-123456789", // found by fuzzing: nine digits, which no server makes
		"lock-12345678", "lock-00000000001", "lock---000000001", "lock-0000000001-lock-", "-0000000001", "",
	} {
		f.Add(name, []byte(guid), int32(7))
	}
	f.Fuzz(func(t *testing.T, name string, id []byte, seq int32) {
		c, ok := parseEntry(name)
		match := nodeForm.FindStringSubmatch(name)
		if ok != (match != nil) {
			t.Fatalf("parseEntry(%q) = %+v, %v; the table of forms says %v", name, c, ok, !ok)
		}
		if ok {
			if want, _ := strconv.ParseInt(match[1], 10, 64); c.seq != want || c.name != name {
				t.Fatalf("parseEntry(%q) = %+v, want sequence %d", name, c, want)
			}
		}

		var b [16]byte
		copy(b[:], id)
		own := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		digits := fmt.Sprintf("%010d", seq) // as the server appends it
		for _, names := range []Names{CuratorNames, KazooNames} {
			prefix := names.name(own)
			made := prefix + digits
			if c, ok := parseEntry(made); !ok || c.seq != int64(seq) || c.name != made {
				t.Fatalf("%v: %q is read back as %+v, %v", names, made, c, ok)
			}
			if !strings.Contains(made, names.guid(own)) {
				t.Fatalf("%v: %q: recovery does not know it", names, made)
			}
			if rest, ok := strings.CutPrefix(made, "_c_"); ok && len(rest) < 32 {
				t.Fatalf("%v: %q panics go-zookeeper", names, made)
			}
			if n, err := goZKSequence(made); err != nil || n != int(seq) {
				t.Fatalf("%v: go-zookeeper reads %q as %d, %v", names, made, n, err)
			}
			if got := kazooForm.FindStringSubmatch(made); seq >= 0 && (got == nil || got[1] != digits) {
				t.Fatalf("%v: kazoo reads %q as %q", names, made, got)
			}
			if names == CuratorNames && curatorSequence(made) != digits {
				t.Fatalf("Curator sorts %q by %q", made, curatorSequence(made))
			}
		}
	})
}

// FuzzNodeData tests the data of a node: every valid owner and all valid data are read
// back; of data written by others nothing is lost, and nothing counts as an owner that
// cannot be one.
func FuzzNodeData(f *testing.F) {
	for _, seed := range []struct{ owner, data, foreign string }{
		{"host:1:abc", "", ""},
		{"host", "\x00", "worker-3"},
		{"tab\tand\nline", "with\x00NUL", "x\x00"},
		{"\u03a9mega", "\xff\xfe", "\x00x"},
		{"o", "d", "\xc3\x00d"},
		{"o", "d", strings.Repeat("a", holdfast.MaxOwner+1)},
		{"\xff", "not UTF-8", ""},
	} {
		f.Add(seed.owner, []byte(seed.data), []byte(seed.foreign))
	}
	f.Fuzz(func(t *testing.T, owner string, data, foreign []byte) {
		if holdfast.CheckOwner("owner", owner) == nil {
			gotOwner, gotData := decodeData(encodeData(owner, data))
			if gotOwner != owner || !bytes.Equal(gotData, data) {
				t.Fatalf("%q, %q came back as %q, %q", owner, data, gotOwner, gotData)
			}
		}
		gotOwner, gotData := decodeData(foreign)
		if gotOwner == "" {
			if !bytes.Equal(gotData, foreign) {
				t.Fatalf("%q: data %q", foreign, gotData)
			}
			return
		}
		if err := holdfast.CheckOwner("owner", gotOwner); err != nil {
			t.Fatalf("%q: the owner %q is none: %v", foreign, gotOwner, err)
		}
		again := encodeData(gotOwner, gotData)
		if !bytes.Equal(again, foreign) && !bytes.Equal(append(again, 0), foreign) {
			t.Fatalf("%q: owner %q and data %q are not all of it", foreign, gotOwner, gotData)
		}
	})
}

// take takes the first byte of a script; 0 at its end.
func take(b *[]byte) byte {
	if len(*b) == 0 {
		return 0
	}
	first := (*b)[0]
	*b = (*b)[1:]
	return first
}

func take32(b *[]byte) int32 {
	return int32(binary.BigEndian.Uint32([]byte{take(b), take(b), take(b), take(b)}))
}
