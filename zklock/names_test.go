package zklock

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestOwnNames: both forms can be read back, carry the guid for recovery, and are safe
// for go-zookeeper, which panics on _c_ followed by fewer than 32 characters.
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
			c, ok := parseEntry(full)
			if !ok || c.seq != 42 || !strings.Contains(full, names.guid(guid)) {
				t.Errorf("%v: %q is parsed as %+v, %v", names, full, c, ok)
			}
			if rest, ok := strings.CutPrefix(prefix, "_c_"); ok && len(rest) < 32 {
				t.Errorf("%v: %q panics go-zookeeper", names, prefix)
			}
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
		{"tab\tand\nline", nil}, // every owner that CheckOwner accepts, or reclaim misses its own nodes
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
