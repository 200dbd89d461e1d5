package zklock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	slashpath "path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// How peers parse a child's name, each by its own source, for our two forms. (nodeForm is
// all of them: Curator's mutex, read-write lock and latch, kazoo's locks, go-zookeeper's,
// the documentation's recipes; the sequence is %010d of a signed 32-bit counter.)
var (
	nodeForm  = regexp.MustCompile(`(?s)^.*(?:lock-|latch-|read-|write-|__lock__|__rlock__|__READ__|__WRIT__)([0-9]{10}|-[0-9]{9,10})$`)
	kazooForm = regexp.MustCompile(`(?:__lock__|__rlock__|lock-)(-?\d{10})$`) // of its WriteLock, with extra_lock_patterns=["lock-"]
)

// curatorSequence is what Curator sorts by.
func curatorSequence(name, recipe string) string {
	return name[strings.LastIndex(name, recipe)+len(recipe):]
}

// id16 makes a limit of the first bytes.
func id16(id []byte) uint16 {
	var b [2]byte
	copy(b[:], id)
	return binary.LittleEndian.Uint16(b[:])>>1 + 1
}

// normal returns a number as an entry has it.
func normal(seq int64) int64 {
	if seq < 0 {
		return sequence.Last
	}
	return seq
}

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
		// Curator's mutex, latch and read-write lock, kazoo's locks, the recipes of ZooKeeper's documentation and in Java.
		"_c_" + guid + "-lock-0000000007", "_c_" + guid + "-latch-0000000008",
		"_c_" + guid + "-__READ__0000000009", "_c_" + guid + "-__WRIT__0000000010",
		"9b2a0c1e5d0f4f438a590a6c7e1d2b3f__lock__0000000011", "9b2a0c1e5d0f4f438a590a6c7e1d2b3f__rlock__0000000012",
		"guid-lock-0000000013", "guid-read-0000000014", "guid-write-0000000015", "x-72057594037927936-lock-0000000016",
		"lock-0000000017", "read-0000000018", "write-0000000019",
		// The counter at its end, and beyond it.
		"_c_" + guid + "-lock-2147483647", "_c_" + guid + "-lock--2147483648", "_c_" + guid + "-lock--2147483647",
		"_c_" + guid + "-lock--214748364", "_c_" + guid + "-lock--000000001", "9b2a0c1e5d0f4f438a590a6c7e1d2b3f__lock__-2147483648",
		// Not in the queue.
		"_c_" + guid + "-lock---147483648", "_c_" + guid + "-lock-00000000012", "_c_" + guid + "-lock-00000012",
		"_c_" + guid + "-lock-0000000012x", "_c_" + guid + "-lock-", "_c_" + guid + "-node-0000000012",
		"_c_" + guid + "-lock-٠٠٠٠٠٠٠٠٠١", guid + "-foo-0000000001", "_c_short-lock-0000000001", "_c_", "_c_x",
		"lock-123456789", // found by fuzzing: nine digits, which no server makes
		"lock-12345678", "lock-1", "lock-00000000001", "lock---000000001", "lock-0000000001-", "lock-0000000001-lock-", "lock-0000000001/x",
		"lock-000000000a", "lock-99999999999999999999", "LOCK-0000000001", "0000000001", "-0000000001", "lock", "locks", "leases", "",
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
			if want, _ := strconv.ParseInt(match[1], 10, 64); c.seq != normal(want) || c.name != name {
				t.Fatalf("parseEntry(%q) = %+v, want sequence %d", name, c, want)
			}
		}

		var b [16]byte
		copy(b[:], id)
		own := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		digits := fmt.Sprintf("%010d", seq) // as the server appends it
		for form := range 3 * namesEnd {
			names := form / 3
			mode := []driver.Mode{{}, {Shared: true}, {Shared: true, Limit: int(id16(id))}}[form%3]
			if names == CuratorLatchNames && mode.Shared {
				continue
			}
			shared := mode == driver.Mode{Shared: true}
			guid := own
			if !names.form().dashed {
				guid = strings.ReplaceAll(own, "-", "")
			}
			made := names.form().prefix(guid, mode) + digits
			if modeOf(made) != mode {
				t.Fatalf("%v: %q has the mode %+v, not %+v", names, made, modeOf(made), mode)
			}
			if names != CuratorLatchNames && !slices.Contains(names.form().seenBy, sequence.FamilyOf(made)) {
				t.Fatalf("%v: %q does not fit", names, made)
			}
			if c, ok := parseEntry(made); !ok || c.seq != normal(int64(seq)) || c.name != made {
				t.Fatalf("%v: %q is read back as %+v, %v", names, made, c, ok)
			}
			if rest, ok := strings.CutPrefix(made, "_c_"); ok && len(rest) < 32 {
				t.Fatalf("%v: %q panics go-zookeeper", names, made)
			}
			if names == CuratorLatchNames {
				if got := curatorSequence(made, "latch-"); got != digits {
					t.Fatalf("Curator's latch sorts %q by %q", made, got)
				}
				continue // no other program respects it
			}
			if n, err := goZKSequence(made); err != nil || n != int(seq) {
				t.Fatalf("%v: go-zookeeper reads %q as %d, %v", names, made, n, err)
			}
			if names == CuratorRWNames {
				recipe := map[bool]string{false: "__WRIT__", true: "__READ__"}[shared]
				if got := curatorSequence(made, recipe); got != digits {
					t.Fatalf("Curator's read-write lock sorts %q by %q", made, got)
				}
				continue
			}
			if got := kazooForm.FindStringSubmatch(made); seq >= 0 && (got == nil || got[1] != digits) {
				t.Fatalf("%v: kazoo reads %q as %q", names, made, got)
			}
			if names == CuratorNames && curatorSequence(made, "lock-") != digits {
				t.Fatalf("Curator sorts %q by %q", made, curatorSequence(made, "lock-"))
			}
		}
	})
}

// FuzzGrantPath tests the names of grants that Ask and Break are given: each that a node in a queue can have
// leads to that child of the lock's node, and any other is ErrInvalid.
func FuzzGrantPath(f *testing.F) {
	for _, name := range []string{
		"_c_9b2a0c1e-5d0f-4f43-8a59-0a6c7e1d2b3f-lock-0000000007", "9b2a0c1e5d0f4f438a590a6c7e1d2b3f__lock__0000000011", "lock-0000000017",
		"worker 3, \u03a9-lock-0000000001", "_c_x-lock--2147483648",
		"", ".", "..", "/", "leases", "a/lock-0000000001", "/lock-0000000001", "../k/lock-0000000001", "lock-1",
		"\x00lock-0000000001", "\xfflock-0000000001", "\ue000lock-0000000001", "\x7flock-0000000001", "\U0001f600lock-0000000001",
	} {
		f.Add("key", name)
		f.Add("/app/lock", name)
	}
	e := &engine{paths: paths{root: DefaultRoot}}
	f.Fuzz(func(t *testing.T, key, name string) {
		if driver.CheckKey("key", strings.TrimPrefix(key, "/")) != nil || e.paths.check(key) != nil {
			return // refused before
		}
		_, entry := parseEntry(name)
		possible := entry && utf8.ValidString(name) && !strings.Contains(name, "/")
		for _, r := range name {
			possible = possible && allowed(r)
		}
		path, err := e.grantPath(driver.Info{Key: key, Holder: driver.Holder{Grant: name}})
		switch {
		case err != nil && (possible || !errors.Is(err, holdfast.ErrInvalid)):
			t.Fatalf("%q: %v", name, err)
		case err == nil && (!possible || path != e.paths.lock(key)+"/"+name || slashpath.Dir(path) != e.paths.lock(key)):
			t.Fatalf("%q of %q leads to %q", name, key, path)
		}
	})
}

// FuzzNodeData tests the data of a node: ours is read back, and of others' data, short text is the owner.
func FuzzNodeData(f *testing.F) {
	for _, seed := range []struct{ owner, data, foreign string }{
		{"host:1:abc", "", ""},
		{"host", "\x00", "worker-3"},                  // as kazoo's identifier
		{"host", "\x00\x00\x01", "127.0.0.1"},         // as Curator's address
		{"tab\tand\nline", "with\x00NUL", `{"a": 1}`}, // every owner that CheckOwner accepts, or reclaim misses its own nodes
		{"\u03a9mega", "\xff\xfe", "x\x00"},
		{strings.Repeat("o", holdfast.MaxOwner), "d", "\x00x"},
		{"o", "d", "\xc3\x00d"},
		{"o", "d", "a\nb\x00d"},
		{"o", "d", strings.Repeat("a", holdfast.MaxOwner)},
		{"o", "d", strings.Repeat("a", holdfast.MaxOwner+1)},
		{"\xff", "not UTF-8", "\xca\xfe"},
		{"o", "__REVOKE__", "__REVOKE__"}, // as Curator's Revoker
		{"__REVOKE__", "", "worker-3\x00__REVOKE__"},
		{"o", "", "127.0.0.1\x00__REVOKE__"},
		{"o", "d\x00__REVOKE__", "\x00__REVOKE__"},
	} {
		f.Add(seed.owner, []byte(seed.data), []byte(seed.foreign))
	}
	f.Fuzz(func(t *testing.T, owner string, data, foreign []byte) {
		if driver.CheckOwner("owner", owner) == nil {
			b := encodeData(owner, data)
			if checkData(b) != nil { // it reads as a wish
				if !strings.HasSuffix(string(b), "__REVOKE__") {
					t.Fatalf("%q, %q is refused", owner, data)
				}
			} else {
				for _, b := range [][]byte{b, withWish(b)} {
					gotOwner, gotData := decodeData(b)
					if gotOwner != owner || !bytes.Equal(gotData, data) {
						t.Fatalf("%q, %q came back as %q, %q", owner, data, gotOwner, gotData)
					}
				}
				if isWish(b) || !isWish(withWish(b)) {
					t.Fatalf("%q, %q: somebody asks, or nobody", owner, data)
				}
			}
		}
		// Of what others wrote, short text before a NUL is an owner; otherwise all of it is data. A wish is neither.
		if asked := withWish(foreign); !isWish(foreign) && !bytes.Equal(withoutWish(asked), foreign) {
			t.Fatalf("%q comes back as %q", foreign, withoutWish(asked))
		}
		for isWish(foreign) {
			foreign = withoutWish(foreign)
		}
		name, rest, _ := bytes.Cut(foreign, []byte{0})
		if driver.CheckOwner("owner", string(name)) != nil {
			name, rest = nil, foreign
		}
		if gotOwner, gotData := decodeData(foreign); gotOwner != string(name) || !bytes.Equal(gotData, rest) {
			t.Fatalf("%q: owner %q and data %q, want %q and %q", foreign, gotOwner, gotData, name, rest)
		}
	})
}

// TestNewGUID checks that a guid is a UUID of version 4, and new.
func TestNewGUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	f := CuratorNames.form()
	for i := range 200 {
		guid := f.newGUID(int64(i % 2 * 7))
		if !form.MatchString(guid) || seen[guid] {
			t.Fatalf("guid %q is no version 4 UUID, or not new", guid)
		}
		seen[guid] = true
	}
}

// TestVoid checks that a node is void exactly from its bound on, in each form of names, and that no other guid makes a node void.
func TestVoid(t *testing.T) {
	for names := range namesEnd {
		f := names.form()
		for _, mode := range []driver.Mode{{}, {Shared: true}, {Shared: true, Limit: 3}} {
			name := func(guid string) string { return f.prefix(guid, mode) }
			bounded := name(f.newGUID(7))
			if bounded == "" {
				continue
			}
			for number, want := range map[string]bool{"0000000006": false, "0000000007": true, "2147483647": true, "-2147483648": false, "7": false, "": false} {
				if void(bounded+number) != want {
					t.Errorf("%q is void: %v", bounded+number, !want)
				}
				if made := name(f.newGUID(0)) + number; void(made) {
					t.Errorf("%q is void", made)
				}
			}
		}
	}
	for _, c := range []struct {
		created, children int32
		want              int64
	}{{}, {7, 3, 7}, {1<<31 - 1, 5, 1<<31 - 1}, {1<<30 + 1, 0, 1<<30 + 1}} {
		if got := nextNumber(&zk.Stat{Cversion: 2*c.created - c.children, NumChildren: c.children}); got != c.want {
			t.Errorf("%+v: the next number is %d", c, got)
		}
	}
}
