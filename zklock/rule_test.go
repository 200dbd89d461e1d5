package zklock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sequence"
)

// line makes a queue: x is an exclusive node, s a reader, w a writer of Curator's, and a digit a permit of that limit. Names begin
// with their place.
func line(nodes string) []entry {
	var all []entry
	for i, node := range nodes {
		mode, f := driver.Mode{Shared: node != 'x' && node != 'w'}, CuratorNames.form()
		if node >= '0' && node <= '9' {
			mode.Limit = int(node - '0')
		}
		if node == 'w' {
			f = CuratorRWNames.form()
		}
		guid := fmt.Sprintf("%x", i) + "b2a0c1e-5d0f-4f43-8a59-0a6c7e1d2b3f"
		all = append(all, entry{name: fmt.Sprintf("%s%010d", f.prefix(guid, mode), i), seq: int64(i)})
	}
	return all
}

// places returns where entries of a line stand in it.
func places(some []entry) string {
	var b strings.Builder
	for _, x := range some {
		fmt.Fprintf(&b, "%x", x.seq)
	}
	return b.String()
}

// TestBlockers tests the one rule of a queue with all modes: which nodes before a request keep it waiting, and which hold the key.
func TestBlockers(t *testing.T) {
	t.Parallel()
	for queue, want := range map[string]struct{ exclusive, reader, permit, holders string }{
		"":      {},
		"x":     {"0", "0", "0", "0"},
		"s":     {"0", "", "0", "0"},
		"sss":   {"012", "", "012", "012"},
		"xss":   {"012", "0", "012", "0"},
		"ssxsx": {"01234", "24", "01234", "01"},
		"wsw":   {"012", "02", "012", "0"},
		"2":     {"0", "0", "", "0"},
		"22":    {"01", "01", "01", "01"},
		"222":   {"012", "012", "012", "01"},
		"3":     {"0", "0", "0", "0"},
		"3332":  {"0123", "0123", "0123", "012"},
		"x2":    {"01", "01", "01", "0"},
		"2x2":   {"012", "012", "012", "0"},
		"s2":    {"01", "1", "01", "0"},
		"12":    {"01", "01", "01", "0"},
	} {
		all := line(queue)
		before := slices.Clone(all)
		for mode, want := range map[driver.Mode]string{{}: want.exclusive, {Shared: true}: want.reader, {Shared: true, Limit: 2}: want.permit} {
			if got := places(blockers(mode, all)); got != want {
				t.Errorf("%s: a request of mode %+v waits for %q, want %q", queue, mode, got, want)
			}
		}
		first, rest := holders(all)
		if got := places(first); got != want.holders || places(rest) != places(all[len(first):]) {
			t.Errorf("%s: %q hold and %q wait, want %q", queue, got, places(rest), want.holders)
		}
		if !slices.Equal(all, before) {
			t.Errorf("%s has become %v", queue, all)
		}
	}
}

// TestPlan tests what a waiter watches, how many of these nodes are left when it stops, and whether that is its grant.
func TestPlan(t *testing.T) {
	t.Parallel()
	exclusive, reader := driver.Mode{}, driver.Mode{Shared: true}
	permit := func(limit int) driver.Mode { return driver.Mode{Shared: true, Limit: limit} }
	for _, c := range []struct {
		queue string
		mode  driver.Mode
		nodes string
		until int
		grant bool
	}{
		{"x", exclusive, "0", 0, true},
		{"sx", exclusive, "01", 0, true},
		{"xxx", exclusive, "012", 0, true},
		{"xxxx", exclusive, "123", 2, false},
		{"xxxxx", exclusive, "234", 2, false},
		{"sxs", reader, "1", 0, true},
		{"xxxs", reader, "012", 0, true},
		{"xxxxs", reader, "123", 2, false},
		{"w", exclusive, "0", 0, false}, // the writer may leave a reader
		{"wx", exclusive, "01", 1, false},
		{"w", reader, "0", 0, false},
		{"1", permit(1), "0", 0, true},
		{"22", permit(2), "01", 1, true},
		{"222", permit(2), "012", 1, true},
		{"2222", permit(2), "123", 2, false},
		{"22222222", permit(2), "567", 2, false},
		{"33333", permit(3), "01234", 2, true},
		{"333333", permit(3), "2345", 3, false},
		{"x22", permit(2), "12", 1, false}, // permits that give up say nothing of the lock before them
		{"222x22", permit(2), "45", 1, false},
		{"x2", permit(2), "0", 0, true},
		{"2x", permit(2), "1", 0, true},
		{"2x2", permit(2), "1", 0, false}, // without the lock, two are before it still
		{"22x", permit(2), "2", 0, false},
		{"3x3x", permit(3), "13", 0, true},
		{"s2", permit(2), "0", 0, true},
		{"32", permit(2), "0", 0, true},
		{"2w", permit(2), "1", 0, false},
		{"999999999", permit(9), "", 0, false},   // the first waiter watches the queue
		{"9999999999", permit(9), "9", 0, false}, // the next one watches the first for its grant
		{"x9999999999", permit(9), "a", 0, false},
		{"9x99999999", permit(9), "1", 0, false},
	} {
		p := planFor(c.mode, line(c.queue), mostCounted)
		if got := places(p.nodes); got != c.nodes || p.until != c.until || p.enough != c.grant {
			t.Errorf("%s, mode %+v: it watches %q until %d are left, which is the grant: %v; want %q, %d, %v",
				c.queue, c.mode, got, p.until, p.enough, c.nodes, c.until, c.grant)
		}
	}
}

// TestPlan_AnyOrderOfEvents_NeitherTooEarlyNorLost plays all plans of short queues. Nodes leave in any order: a grant without a list
// is one by the rule, and a request whose turn has come is not waiting.
func TestPlan_AnyOrderOfEvents_NeitherTooEarlyNorLost(t *testing.T) {
	t.Parallel()
	modes := []driver.Mode{{}, {Shared: true}, {Shared: true, Limit: 1}, {Shared: true, Limit: 2}, {Shared: true, Limit: 3}}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		var queue strings.Builder
		for range 1 + random.IntN(8) {
			queue.WriteByte("xs123w222333"[random.IntN(12)])
		}
		ahead, mode := line(queue.String()), modes[random.IntN(len(modes))]
		if len(blockers(mode, ahead)) == 0 {
			continue
		}
		p, left := planFor(mode, ahead, mostCounted), slices.Clone(ahead)
		for standing := len(p.nodes); standing > p.until; {
			if len(blockers(mode, left)) == 0 {
				t.Fatalf("%s, mode %+v: it waits though only %q are left", queue.String(), mode, places(left))
			}
			i := random.IntN(len(left))
			if slices.Contains(p.nodes, left[i]) {
				standing--
			}
			left = slices.Delete(left, i, i+1)
		}
		if p.enough && len(blockers(mode, left)) > 0 {
			t.Fatalf("%s, mode %+v: it is granted the key though %q are left", queue.String(), mode, places(left))
		}
	}
}

// TestWhoSeesWhom tests which names fit a path: see NamesError.
func TestWhoSeesWhom(t *testing.T) {
	t.Parallel()
	const guid, plain = "9b2a0c1e-5d0f-4f43-8a59-0a6c7e1d2b3f", "9b2a0c1e5d0f4f438a590a6c7e1d2b3f"
	for node, fits := range map[string][]Names{ // those to whose nodes its program is not known to be blind
		"_c_0-lock-0000000001":                            {CuratorNames},
		"_c_0-shared-lock-0000000001":                     {CuratorNames, KazooNames},
		"_c_" + guid + "-permit-3-lock-0000000001":        {CuratorNames, KazooNames},
		"_c_0-permit-3-lock-0000000001":                   {CuratorNames}, // not of holdfast
		"_c_0-__WRIT__0000000001":                         {CuratorRWNames},
		"_c_0-__READ__0000000001":                         {CuratorRWNames},
		"_c_" + guid + "-permit-3-__WRIT__0000000001":     {CuratorRWNames},
		"_c_0-latch-0000000001":                           nil,
		"0__lock__0000000001":                             {CuratorNames, KazooNames},
		"0__rlock__0000000001":                            {CuratorNames, KazooNames},
		plain + "-permit-3__lock__0000000001":             {CuratorNames, KazooNames},
		"x-read-0000000001":                               {CuratorNames, KazooNames},
		"thread-0000000001":                               {CuratorNames, KazooNames},
		"_c_" + guid + "-shared-lock-0000000001, behind":  {CuratorNames, KazooNames, CuratorRWNames},
		"_c_" + guid + "-permit-3-lock-0000000001,behind": {CuratorNames, KazooNames, CuratorRWNames},
	} {
		for _, names := range []Names{CuratorNames, KazooNames, CuratorRWNames} {
			name, _, behind := strings.Cut(node, ",")
			ahead := []entry{{name: name}}
			if behind {
				ahead = []entry{{name: names.form().prefix(guid, driver.Mode{}) + "0000000000"}, {name: name}}
			}
			e := &engine{opts: Options{Names: names}}
			for _, mode := range []driver.Mode{{Shared: true}, {Shared: true, Limit: 3}} {
				err := e.fits(&driver.Request{Mode: mode}, ahead)
				if want := slices.Contains(fits, names); (err == nil) != want || err != nil && !errors.Is(err, driver.ErrNames) {
					t.Errorf("%s in the way of %v, mode %+v: %v; fits: %v", node, names, mode, err, want)
				}
			}
		}
	}
	for node, limit := range map[string]int{
		"_c_" + guid + "-permit-12-lock-0000000001": 12, "_c_" + guid + "-permit-12-lock--000000001": 12,
		plain + "-permit-1__lock__-147483648": 1, "_c_" + guid + "-permit-7-__WRIT__0000000001": 7,
		"_c_" + guid + "-permit-0-lock-0000000001": 0, "_c_" + guid + "-permit-07-lock-0000000001": 0,
		"_c_" + guid + "-permit--lock-0000000001":    0,
		"_c_" + guid + "-permit-7-x-lock-0000000001": 0, "_c_" + guid + "-permit-7-latch-0000000001": 0, "job-permit-7-lock-0000000001": 0,
		"-permit-7-lock-0000000001": 0, "_c_-permit-7-lock-0000000001": 0, "-permit-7__lock__0000000001": 0,
		"_c_" + guid + "x-permit-7-lock-0000000001": 0, "_c_" + guid + "-permit-99999999999999999999-lock-0000000001": 0, "": 0,
	} {
		if got := sequence.Limit(node); got != limit {
			t.Errorf("%s: a permit of %d, want %d", node, got, limit)
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
