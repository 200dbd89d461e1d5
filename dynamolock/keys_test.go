package dynamolock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

const (
	typeS = types.ScalarAttributeTypeS
	typeN = types.ScalarAttributeTypeN
	typeB = types.ScalarAttributeTypeB
)

// Every type of key, with names that are reserved words.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name     string
		keys     dynamolock.Keys
		good     []string
		bad      []string
		prefixes map[string]int // of good, how many
	}{
		{
			name:     "N",
			keys:     dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "name", Type: typeN}},
			good:     []string{"0", "7", "-7", "0.5", "-12.25", "12345678901234567890123456789012345678"},
			bad:      []string{"07", "7.0", "1e3", "+7", "-0", ".5", "5.", "a", "-", "123456789012345678901234567890123456789", "0x1", "١"},
			prefixes: map[string]int{"": 6, "7": -1},
		},
		{ // the keys of the npm client, cirello's and Amazon's
			name: "S, any",
			keys: dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "key"}},
			good: []string{
				"https://x/y", "a//b", "/a", "a/", "/", ".", "a/../b", "a\x00b", "line\n", strings.Repeat("k", 2048), strings.Repeat("\u00e4", 1024),
			},
			bad:      []string{"", "\xff", strings.Repeat("k", 2049)},
			prefixes: map[string]int{"": 11, "a": 4, "a/": 3, "a//": 1, "/": 2, "https://": 1, "\xff": -1, strings.Repeat("k", 2049): -1},
		},
		{
			name:     "B, any",
			keys:     dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "value", Type: typeB}},
			good:     []string{"\xff\x00\xfe", "\xff", "a//b", strings.Repeat("\xff", 2048)},
			bad:      []string{"", strings.Repeat("k", 2049)},
			prefixes: map[string]int{"": 4, "\xff": 3, "\xff\x00": 1},
		},
		{
			name: "S and B, any",
			keys: dynamolock.Keys{
				Partition: dynamolock.KeyAttr{Name: "hash"}, Sort: dynamolock.KeyAttr{Name: "bytes", Type: typeB},
			},
			good:     []string{"a//", "a//b", "https://x/y", "a/\xff", "b/" + strings.Repeat("\xff", 1024)},
			bad:      []string{"/a", "a/", "", "a", "\xff/a", "b/" + strings.Repeat("s", 1025)},
			prefixes: map[string]int{"": 5, "a/": 3, "a//": 2, "a/\xff": 1},
		},
		{
			name: "S and S",
			keys: dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "hash"}, Sort: dynamolock.KeyAttr{Name: "range"}},
			good: []string{"a/1", "a/1/2", "a/2", "ab/1"}, bad: []string{"a", "ab"},
			prefixes: map[string]int{"": 4, "a": 4, "a/": 3, "a/1": 2, "ab": 1, "x/": 0},
		},
		{
			name: "S and N",
			keys: dynamolock.Keys{
				Partition: dynamolock.KeyAttr{Name: "hash"}, Sort: dynamolock.KeyAttr{Name: "number", Type: typeN}, Separator: "#",
			},
			good: []string{"a/b#1", "a/b#-2", "c#3.5"}, bad: []string{"a/b", "a#x", "a#01", "#1", "a#"},
			prefixes: map[string]int{"": 3, "a/": 2, "a/b#": 2, "a/b#1": -1},
		},
		{
			name: "N and B",
			keys: dynamolock.Keys{
				Partition: dynamolock.KeyAttr{Name: "number", Type: typeN},
				Sort:      dynamolock.KeyAttr{Name: "bytes", Type: typeB}, Separator: "::",
			},
			good: []string{"1::a", "1::ab", "2::a::b"}, bad: []string{"a::1", "1:a"},
			prefixes: map[string]int{"": 3, "1::": 2, "1::ab": 1, "1": -1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, dynamolock.Options{Keys: c.keys}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				for _, key := range c.good {
					lock := a.hold(t, key)
					if _, err := b.TryAcquire(t.Context(), key); !errors.Is(err, holdfast.ErrHeld) {
						t.Errorf("%q: %v", key, err)
					}
					mustVerify(t, lock)
				}
				a.conn.ResetCounts()
				for _, key := range c.bad {
					var invalid *holdfast.InvalidError
					if _, err := a.TryAcquire(t.Context(), key); !errors.As(err, &invalid) || invalid.Field != "key" {
						t.Errorf("%q: %v", key, err)
					}
					if _, err := a.Inspect(t.Context(), key); !errors.Is(err, holdfast.ErrInvalid) {
						t.Errorf("Inspect %q: %v", key, err)
					}
					if _, err := a.AcquireAny(t.Context(), []string{c.good[0], key}); !errors.Is(err, holdfast.ErrInvalid) {
						t.Errorf("AcquireAny %q: %v", key, err)
					}
				}
				if calls := a.conn.Calls(); len(calls) != 0 {
					t.Errorf("bad keys were sent: %v", calls)
				}
				for prefix, want := range c.prefixes {
					got, failed := b.list(t, prefix)
					switch {
					case want < 0 && !errors.Is(failed, holdfast.ErrInvalid):
						t.Errorf("List(%q): %v, %v", prefix, got, failed)
					case want >= 0 && (failed != nil || len(got) != want):
						t.Errorf("List(%q): %v, %v; want %d", prefix, got, failed, want)
					}
					for _, key := range got {
						if !strings.HasPrefix(key, prefix) || !slices.Contains(c.good, key) {
							t.Errorf("List(%q) yields %q", prefix, key)
						}
					}
				}
			})
		})
	}
}

// Items whose keys have no name here belong to other programs.
func TestListSkipsWhatHasNoName(t *testing.T) {
	keys := dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "p"}, Sort: dynamolock.KeyAttr{Name: "s"}}
	bubble(t, dynamolock.Options{Keys: keys}, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.hold(t, "a/b/c")
		for _, key := range [][2]string{{"a/b", "c"}, {"a/", "\x01"}, {"/x", "."}} {
			i := npm("7", "20000", "g")
			i["p"], i["s"] = s(key[0]), s(key[1])
			h.db.SetItem(tableName, i)
		}
		bad := npm("7", "20000", "g")
		bad["p"], bad["s"], bad["fencingToken"] = s("bad"), s("1"), s("x")
		h.db.SetItem(tableName, bad)
		got, failed := a.list(t, "")
		var foreign *dynamolock.ItemError
		if !slices.Equal(got, []string{"a/b/c"}) || !errors.As(failed, &foreign) || !strings.Contains(failed.Error(), "bad/1") {
			t.Errorf("%q, %v", got, failed)
		}
	})
}
