package zklock

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestContenderForms(t *testing.T) {
	const guid = "9b2a0c1e-5d0f-4f43-8a59-0a6c7e1d2b3f"
	for name, want := range map[string]int64{
		"_c_" + guid + "-lock-0000000007":                     7,  // Curator's InterProcessMutex, go-zookeeper's Lock, ours
		"_c_" + guid + "-latch-0000000008":                    8,  // Curator's LeaderLatch
		"_c_" + guid + "-__READ__0000000009":                  9,  // Curator's InterProcessReadWriteLock
		"_c_" + guid + "-__WRIT__0000000010":                  10, //
		"9b2a0c1e5d0f4f438a590a6c7e1d2b3f__lock__0000000011":  11, // kazoo's Lock, ours with KazooNames
		"9b2a0c1e5d0f4f438a590a6c7e1d2b3f__rlock__0000000012": 12, // kazoo's ReadLock
		"lock-0000000013":                                     13, // ZooKeeper's documentation
		"read-0000000014":                                     14,
		"write-0000000015":                                    15,
		"x-72057594037927936-lock-0000000016":                 16,             // the Java recipe's WriteLock has the session in front
		"_c_" + guid + "-lock-2147483647":                     math.MaxInt32,  // where the counter sticks
		"_c_" + guid + "-lock--2147483648":                    math.MinInt32,  // overlapping creations at its end
		"_c_" + guid + "-lock--000000001":                     -1,             // %010d counts the sign
		"_c_" + guid + "-lock--2147483647":                    -math.MaxInt32, //
		"9b2a0c1e5d0f4f438a590a6c7e1d2b3f__lock__-2147483648": math.MinInt32,
	} {
		if c, ok := parseContender(name); !ok || c.seq != want || c.name != name {
			t.Errorf("parseContender(%q) = %+v, %v, want sequence %d", name, c, ok, want)
		}
	}
	for _, name := range []string{
		"", "lock", "lock-", "lock-1", "lock-12345678", "lock-00000000001", "lock-0000000001x", "lock-0000000001-",
		"0000000001", "block", "leases", "locks", "protected", "lock-0000000001/x", "lock---000000001",
		"_c_" + guid + "-lock-", "_c_" + guid + "-lock-٠٠٠٠٠٠٠٠٠١", "LOCK-0000000001", "lock-000000000a",
		guid + "-foo-0000000001", "lock-99999999999999999999",
	} {
		if c, ok := parseContender(name); ok {
			t.Errorf("parseContender(%q) = %+v, want none", name, c)
		}
	}
}

// TestOwnNames: both forms are read back, carry the guid that recovery looks
// for, are seen by the wire as lock nodes, and are safe for go-zookeeper, which
// panics on _c_ with fewer than 32 characters behind it.
func TestOwnNames(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	for range 100 {
		guid := newGUID()
		if !form.MatchString(guid) || seen[guid] {
			t.Fatalf("guid %q is no version 4 UUID, or not new", guid)
		}
		seen[guid] = true
		for _, names := range []Names{CuratorNames, KazooNames} {
			prefix := names.name(guid)
			full := prefix + "0000000042"
			c, ok := parseContender(full)
			if !ok || c.seq != 42 || !strings.Contains(full, names.guid(guid)) || !isLockPath("/a/"+prefix) || isLockPath("/a/"+full) {
				t.Errorf("%v: %q is parsed as %+v, %v", names, full, c, ok)
			}
			if rest, ok := strings.CutPrefix(prefix, "_c_"); ok && len(rest) < 32 {
				t.Errorf("%v: %q panics go-zookeeper", names, prefix)
			}
		}
	}
}

// TestTies guards the cure of hazard Z6: where sequence numbers do not tell who came
// first, nobody goes by them.
func TestTies(t *testing.T) {
	for _, test := range []struct {
		seqs []int64 // sorted by rank
		want []int   // those that tie
	}{
		{nil, nil},
		{[]int64{0}, nil},
		{[]int64{1, 2, 7}, nil},
		{[]int64{3, 3}, []int{0, 1}},
		{[]int64{1, 3, 3, 4}, []int{1, 2}},
		{[]int64{math.MaxInt32}, nil},
		{[]int64{math.MaxInt32 - 2, math.MaxInt32 - 1, math.MaxInt32}, nil},
		{[]int64{5, math.MaxInt32, math.MaxInt32}, []int{1, 2}},
		{[]int64{5, -1}, nil},
		{[]int64{5, math.MinInt32, math.MaxInt32, -1}, []int{1, 2, 3}},
	} {
		var line []contender
		for i, seq := range test.seqs {
			line = append(line, contender{fmt.Sprint(i), seq})
		}
		var got []int
		for _, c := range ties(line) {
			got = append(got, slices.Index(line, c))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("ties(%v) = %v, want %v", test.seqs, got, test.want)
		}
	}
}

func TestData(t *testing.T) {
	for _, test := range []struct {
		owner string
		data  []byte
	}{
		{"host:1:abc", nil},
		{"host", []byte("data")},
		{"host", []byte{0}},
		{"host", []byte{0, 0, 1}},
		{"host", []byte("with\x00NUL")},
		{"tab\tand\nline", nil}, // every owner that CheckOwner takes, or reclaiming misses its own
		{"Ωmega", []byte{0xff, 0xfe}},
		{strings.Repeat("o", holdfast.MaxOwner), bytes.Repeat([]byte{7}, holdfast.MaxData)},
	} {
		owner, data := decodeData(encodeData(test.owner, test.data))
		if owner != test.owner || !bytes.Equal(data, test.data) {
			t.Errorf("%.20q, %.20q came back as %.20q, %.20q", test.owner, test.data, owner, data)
		}
	}
	for name, test := range map[string]struct {
		foreign []byte
		owner   string
		data    []byte
	}{
		"nothing":                    {nil, "", nil},
		"kazoo's identifier":         {[]byte("worker-3"), "worker-3", nil},
		"Curator's address":          {[]byte("127.0.0.1"), "127.0.0.1", nil},
		"JSON":                       {[]byte(`{"a": 1}`), `{"a": 1}`, nil},
		"a trailing NUL":             {[]byte("x\x00"), "x", nil},
		"a leading NUL":              {[]byte("\x00x"), "", []byte("\x00x")},
		"bytes":                      {[]byte{0xca, 0xfe}, "", []byte{0xca, 0xfe}},
		"lines":                      {[]byte("a\nb"), "a\nb", nil},
		"too long to be a name":      {bytes.Repeat([]byte("a"), holdfast.MaxOwner+1), "", bytes.Repeat([]byte("a"), holdfast.MaxOwner+1)},
		"as long as a name may be":   {bytes.Repeat([]byte("a"), holdfast.MaxOwner), strings.Repeat("a", holdfast.MaxOwner), nil},
		"a broken rune before a NUL": {[]byte("\xc3\x00d"), "", []byte("\xc3\x00d")},
	} {
		owner, data := decodeData(test.foreign)
		if owner != test.owner || !bytes.Equal(data, test.data) {
			t.Errorf("%s: %.20q is owner %.20q, data %.20q", name, test.foreign, owner, data)
		}
	}
}

func TestEncodeDataKeepsItsInput(t *testing.T) {
	data := slices.Repeat([]byte{1}, 4)
	b := encodeData("o", data)
	b[len(b)-1] = 9
	if data[3] != 1 {
		t.Error("the encoded data shares memory with the caller's")
	}
}
