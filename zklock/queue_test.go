package zklock

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestParseEntry(t *testing.T) {
	t.Parallel()
	const guid = "_c_f4b5e2a6-1c0b-4d3e-8f6a-0123456789ab-"
	for _, c := range []struct {
		name string
		seq  int64
		ok   bool
	}{
		{guid + "lock-0000000012", 12, true},
		{guid + "latch-0000000012", 12, true},
		{"_c_00112233445566778899aabbccddeeff-lock-2147483647", 2147483647, true},
		{"00112233445566778899aabbccddeeff__lock__0000000007", 7, true},
		{"00112233445566778899aabbccddeeff__rlock__0000000007", 7, true},
		{guid + "__READ__0000000007", 7, true},
		{guid + "__WRIT__0000000007", 7, true},
		{"guid-read-0000000007", 7, true},
		{"guid-write-0000000007", 7, true},
		{"lock-0000000007", 7, true},
		{guid + "lock--214748364", -214748364, true},
		{guid + "lock--2147483648", -2147483648, true},
		{guid + "lock---147483648", 0, false},
		{guid + "lock-00000000012", 0, false}, // eleven digits
		{guid + "lock-00000012", 0, false},    // eight
		{guid + "lock-0000000012x", 0, false},
		{guid + "lock-", 0, false},
		{guid + "node-0000000012", 0, false},
		{"0000000012", 0, false},
		{"-0000000012", 0, false},
		{"", 0, false},
	} {
		got, ok := parseEntry(c.name)
		if ok != c.ok || (ok && (got.seq != c.seq || got.name != c.name)) {
			t.Errorf("parseEntry(%q) = %v, %v; want %d, %v", c.name, got, ok, c.seq, c.ok)
		}
	}
}

func TestOrderKeepsThoseBeforeOwn(t *testing.T) {
	t.Parallel()
	e := &engine{}
	children := []string{"b-lock-0000000003", "foreign", "d-lock-0000000005", "a-lock-0000000001", "c-lock-0000000004"}
	for own, want := range map[string][]string{
		"":                  {"a-lock-0000000001", "b-lock-0000000003", "c-lock-0000000004", "d-lock-0000000005"},
		"c-lock-0000000004": {"a-lock-0000000001", "b-lock-0000000003", "c-lock-0000000004"},
		"a-lock-0000000001": {"a-lock-0000000001"},
	} {
		line, err := e.order(t.Context(), "/lock", slices.Clone(children), own)
		if err != nil {
			t.Fatalf("order with own %q: %v", own, err)
		}
		var got []string
		for _, c := range line {
			got = append(got, c.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("order with own %q = %q, want %q", own, got, want)
		}
	}
}

// TestOrderOfADowngrade tests the cure of hazard Z19: a reader with the number of a
// writer comes right behind it, although it came after others, and this takes no read.
func TestOrderOfADowngrade(t *testing.T) {
	t.Parallel()
	e := &engine{}
	const guid = "_c_f4b5e2a6-1c0b-4d3e-8f6a-0123456789ab-"
	want := []string{"a-lock-0000000004", guid + "__WRIT__0000000005", guid + "__READ__0000000005", "b-lock-0000000006"}
	for _, own := range []string{"", "b-lock-0000000006"} {
		line, err := e.order(t.Context(), "/lock", []string{want[3], want[2], want[0], want[1]}, own)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range line {
			got = append(got, c.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("order with own %q = %q, want %q", own, got, want)
		}
	}
}

func TestEntryForms(t *testing.T) {
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
		if c, ok := parseEntry(name); !ok || c.seq != want || c.name != name {
			t.Errorf("parseEntry(%q) = %+v, %v, want sequence %d", name, c, ok, want)
		}
	}
	for _, name := range []string{
		"", "lock", "lock-", "lock-1", "lock-12345678", "lock-00000000001", "lock-0000000001x", "lock-0000000001-",
		"0000000001", "block", "leases", "locks", "protected", "lock-0000000001/x", "lock---000000001",
		"_c_" + guid + "-lock-", "_c_" + guid + "-lock-٠٠٠٠٠٠٠٠٠١", "LOCK-0000000001", "lock-000000000a",
		guid + "-foo-0000000001", "lock-99999999999999999999",
	} {
		if c, ok := parseEntry(name); ok {
			t.Errorf("parseEntry(%q) = %+v, want none", name, c)
		}
	}
}

// TestTies tests the cure of hazard Z6: where sequence numbers do not show who came
// first, the client does not use them.
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
		var line []entry
		for i, seq := range test.seqs {
			line = append(line, entry{fmt.Sprint(i), seq})
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
