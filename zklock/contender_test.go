package zklock

import (
	"context"
	"slices"
	"testing"
)

func TestParseContender(t *testing.T) {
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
		got, ok := parseContender(c.name)
		if ok != c.ok || (ok && (got.seq != c.seq || got.name != c.name)) {
			t.Errorf("parseContender(%q) = %v, %v; want %d, %v", c.name, got, ok, c.seq, c.ok)
		}
	}
}

func TestOrderKeepsThoseBeforeOwn(t *testing.T) {
	t.Parallel()
	b := &engine{}
	children := []string{"b-lock-0000000003", "foreign", "d-lock-0000000005", "a-lock-0000000001", "c-lock-0000000004"}
	for own, want := range map[string][]string{
		"":                  {"a-lock-0000000001", "b-lock-0000000003", "c-lock-0000000004", "d-lock-0000000005"},
		"c-lock-0000000004": {"a-lock-0000000001", "b-lock-0000000003", "c-lock-0000000004"},
		"a-lock-0000000001": {"a-lock-0000000001"},
	} {
		line, err := b.order(t.Context(), "/lock", slices.Clone(children), own)
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

// TestOrderOfADowngrade guards the cure of hazard Z19: a reader with the number of a
// writer stands right behind it, though it came after others, and no read is needed to
// tell.
func TestOrderOfADowngrade(t *testing.T) {
	t.Parallel()
	b := &engine{}
	const guid = "_c_f4b5e2a6-1c0b-4d3e-8f6a-0123456789ab-"
	want := []string{"a-lock-0000000004", guid + "__WRIT__0000000005", guid + "__READ__0000000005", "b-lock-0000000006"}
	for _, own := range []string{"", "b-lock-0000000006"} {
		line, err := b.order(t.Context(), "/lock", []string{want[3], want[2], want[0], want[1]}, own)
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

// TestFindTwin guards against a node that is being deleted being taken for the
// place's own: a creation that was repeated can leave two nodes, and the one that
// was chosen can go, by an operator's hand, before the other.
func TestFindTwin(t *testing.T) {
	t.Parallel()
	closed, closeNow := context.WithCancel(t.Context())
	closeNow()
	b := &engine{background: closed, strays: &strays{stopped: true}}
	guid := newGUID()
	first, second := b.opts.Names.name(guid)+"2147483647", b.opts.Names.name(guid)+"-2147483648"
	contenders := func(names ...string) []contender {
		t.Helper()
		var line []contender
		for _, name := range names {
			c, ok := parseContender(name)
			if !ok {
				t.Fatalf("%q is no contender", name)
			}
			line = append(line, c)
		}
		return line
	}
	for _, c := range []struct {
		name      string
		node      string
		uncertain bool
		line      []contender
		want      string // "": not found
	}{
		{"both", second, true, contenders("a-lock-0000000001", first, second), first},
		{"the second only", second, true, contenders("a-lock-0000000001", second), second},
		{"the one that was chosen", first, false, contenders("a-lock-0000000001", first, second), first},
		{"a twin that comes before it", second, false, contenders("a-lock-0000000001", first, second), second},
		{"its twin only", first, false, contenders("a-lock-0000000001", second), ""},
		{"neither", first, false, contenders("a-lock-0000000001"), ""},
	} {
		p := &place{b: b, sess: &session{}, guid: guid, node: c.node, uncertain: c.uncertain, own: &own{}}
		_, found := p.find(c.line)
		switch {
		case found != (c.want != ""):
			t.Errorf("%s: found = %v", c.name, found)
		case found && p.node != c.want:
			t.Errorf("%s: found %q, want %q", c.name, p.node, c.want)
		}
	}
}
