package zklock

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// line makes a queue of kinds: s for a shared one, x for an exclusive one, w for a writer of
// Curator's. Names begin with their place.
func line(kinds string) []entry {
	var all []entry
	for i, kind := range kinds {
		marker := map[rune]string{'s': "-shared-lock-", 'x': "-lock-", 'w': "-__WRIT__"}[kind]
		all = append(all, entry{name: string(rune('0'+i)) + marker + "000000000" + string(rune('0'+i)), seq: int64(i)})
	}
	return all
}

// places returns where entries of a line stand in it.
func places(some []entry) string {
	var b strings.Builder
	for _, x := range some {
		b.WriteByte(x.name[0])
	}
	return b.String()
}

// TestBlockers tests the one rule of a queue with both kinds: who before me blocks me.
func TestBlockers(t *testing.T) {
	t.Parallel()
	for queue, want := range map[string]struct{ exclusive, shared, holders string }{
		"":      {"", "", ""},
		"x":     {"0", "0", "0"},
		"s":     {"0", "", "0"},
		"sss":   {"012", "", "012"},
		"xss":   {"012", "0", "0"},
		"ssxsx": {"01234", "24", "01"},
		"wsw":   {"012", "02", "0"},
	} {
		all := line(queue)
		before := slices.Clone(all)
		if got := places(blockers(driver.Mode{}, all)); got != want.exclusive {
			t.Errorf("%s: an exclusive one waits for %q, want %q", queue, got, want.exclusive)
		}
		if got := places(blockers(driver.Mode{Shared: true}, all)); got != want.shared {
			t.Errorf("%s: a shared one waits for %q, want %q", queue, got, want.shared)
		}
		if got := places(holders(all)); got != want.holders {
			t.Errorf("%s: %q hold, want %q", queue, got, want.holders)
		}
		if !slices.Equal(all, before) {
			t.Errorf("%s has become %v", queue, all)
		}
	}
}

// TestLookAheadOfKinds tests the cures of hazards Z19 and Z39 in what a waiter watches: it looks
// only beyond to who goes before its predecessor holds the lock; of the waiters of its own
// client only exclusive ones tell that all before them are gone; only who is not shared has to
// fear the reader that Curator's writer leaves behind.
func TestLookAheadOfKinds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		queue  string
		shared bool
		beyond string // its place; "" if it looks at none
		pair   bool
	}{
		{queue: "x"},
		{queue: "xx", beyond: "0", pair: true},
		{queue: "ss"},
		{queue: "xs", beyond: "0", pair: true},
		{queue: "sx"},
		{queue: "xsx"},
		{queue: "wx", beyond: "0"},
		{queue: "wx", shared: true, beyond: "0", pair: true},
		{queue: "xsssx", shared: true, beyond: "0", pair: true},
	} {
		e := &engine{waiters: waiters{byPath: make(map[string]*waiter)}}
		c := &contender{engine: e, req: &driver.Request{Mode: driver.Mode{Shared: test.shared}}, parent: "/q"}
		for _, x := range line(test.queue) { // all are waiters of this client
			mate := &contender{engine: e, parent: "/q", node: x.name, req: &driver.Request{Mode: driver.Mode{Shared: sequence.Shared(x.name)}}}
			mate.joinWaiters()
			if shared := mate.waiter == nil; shared != sequence.Shared(x.name) {
				t.Errorf("%s: %s is known to wait: %v", test.queue, x.name, !shared)
			}
			mate.leaveWaiters(true)
		}
		o := c.lookAhead(c.blockers(line(test.queue)))
		if got := o.beyond[:min(1, len(o.beyond))]; got != test.beyond || o.pair != test.pair {
			t.Errorf("%s, shared %v: it looks at %q, pair %v; want %q, %v", test.queue, test.shared, got, o.pair, test.beyond, test.pair)
		}
	}
}

// TestWhoSeesWhom tests which names fit a path: see NamesError.
func TestWhoSeesWhom(t *testing.T) {
	t.Parallel()
	nodes := map[string][]Names{ // those to whose nodes its program is not known to be blind
		"_c_0-lock-0000000001":        {CuratorNames},
		"_c_0-shared-lock-0000000001": {CuratorNames, KazooNames},
		"_c_0-__WRIT__0000000001":     {CuratorRWNames},
		"_c_0-__READ__0000000001":     {CuratorRWNames},
		"_c_0-latch-0000000001":       nil,
		"0__lock__0000000001":         {CuratorNames, KazooNames},
		"0__rlock__0000000001":        {CuratorNames, KazooNames},
		"x-read-0000000001":           {CuratorNames, KazooNames},
		"thread-0000000001":           {CuratorNames, KazooNames},
	}
	for node, fits := range nodes {
		for _, names := range []Names{CuratorNames, KazooNames, CuratorRWNames} {
			if got := names.seenBy(sequence.FamilyOf(node)); got != slices.Contains(fits, names) {
				t.Errorf("%s in the way of %v: it sees that, %v", node, names, got)
			}
		}
	}
	for node, shared := range map[string]bool{
		"read-0000000001": true, "x-read-0000000001": true, "thread-0000000001": false, "read--147483648": true, "thread--147483648": false,
		"x-shared-lock--000000001": true, "shared-lock-0000000001": false, "x-__READ__-147483648": true,
	} {
		if got := sequence.Shared(node); got != shared {
			t.Errorf("%s is shared: %v", node, got)
		}
	}
}

// Whoever repeated a creation is there twice for a moment, and holds the key once.
func TestHoldersOnce(t *testing.T) {
	t.Parallel()
	const one, two = "9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0003", "9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0004"
	plain := func(guid string) string { return strings.ReplaceAll(guid, "-", "") }
	for _, names := range [][]string{
		{"_c_" + one + "-shared-lock-0000000000", "_c_" + two + "-shared-lock-0000000001", "_c_" + one + "-shared-lock-0000000002"},
		{"_c_" + one + "-__READ__0000000000", "_c_" + two + "-__READ__0000000001", "_c_" + one + "-__READ__0000000002"},
		{plain(one) + "__rlock__0000000000", plain(two) + "__rlock__0000000001", plain(one) + "__rlock__0000000002"},
	} {
		var line []entry
		for i, name := range names {
			line = append(line, entry{name: name, seq: int64(i)})
		}
		if got := holders(line); !slices.Equal(got, line[:2]) {
			t.Errorf("%v: held by %v, want the first two", names, got)
		}
	}
	unnamed := []entry{{name: "service-read-__READ__0000000000"}, {name: "service-read-__READ__0000000001", seq: 1}}
	if got := holders(unnamed); len(got) != 2 {
		t.Errorf("%v: held by %v, want both", unnamed, got)
	}
}
