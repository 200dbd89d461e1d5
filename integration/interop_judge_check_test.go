package integration_test

import (
	"strings"
	"testing"
)

// TestInteropJudge plants violations that the observer must catch: one that excuses too
// much proves nothing.
func TestInteropJudge(t *testing.T) {
	t.Parallel()
	const ms = 1e6
	// In all stories the first holds from 100 to 900, and the second from 500.
	for _, test := range []struct {
		name   string
		first  fleetLanguage
		node   *observed // of the first; nil: it was never seen
		robbed bool
		want   string // part of the violation; "": there is none
	}{
		{name: "a peer's session expired in time", first: peerCurator, node: &observed{seen: 400 * ms, gone: 410 * ms, expired: true}},
		{name: "granted while the node was there", first: peerCurator, node: &observed{seen: 501 * ms, gone: 510 * ms, expired: true}, want: "two hold k: Curator"},
		{name: "the node is still there", first: peerKazoo, node: &observed{seen: 900 * ms}, want: "two hold k: kazoo"},
		{name: "the node was never seen", first: peerGo, want: "two hold k: go-zookeeper"},
		{name: "deleted in a live session", first: peerCurator, node: &observed{seen: 400 * ms, gone: 410 * ms}, robbed: true, want: "two hold k: Curator"},
		{name: "given back", first: peerCurator, node: &observed{seen: 901 * ms, gone: 910 * ms}, want: "two hold k: Curator"},
		{name: "ours is not excused", first: peerZklock, node: &observed{seen: 400 * ms, gone: 410 * ms, expired: true}, want: "two hold k: zklock"},
		{name: "nor by other names", first: peerZklockKazoo, node: &observed{seen: 400 * ms, gone: 410 * ms, expired: true}, want: "two hold k: zklock"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWitness(0)
			for _, r := range []struct {
				name string
				who  fleetLanguage
				fleetReport
			}{
				{"first", test.first, fleetReport{What: fleetAcquired, At: 100 * ms, Token: 7}},
				{"second", peerZklock, fleetReport{What: fleetAcquired, At: 500 * ms, Token: 8}},
				{"second", peerZklock, fleetReport{What: fleetHolding, At: 600 * ms, Token: 8}},
				{"first", test.first, fleetReport{What: fleetHolding, At: 900 * ms, Token: 7}},
			} {
				r.Key = "k"
				w.see(r.name, r.who, r.fleetReport)
			}
			o := &observer{nodes: map[uint64]*observed{8: {seen: 600 * ms}}}
			if test.node != nil {
				o.nodes[7] = test.node
			}
			if robbed := o.judge(w); (len(robbed) > 0) != test.robbed {
				t.Errorf("robbed are %q, want any: %v", robbed, test.robbed)
			}
			found := w.violations(true)
			if test.want == "" && len(found) > 0 || test.want != "" && (len(found) != 1 || !strings.Contains(found[0], test.want)) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// TestForeignRace tests the filter of race reports: it drops those of go-zookeeper alone,
// and no others.
func TestForeignRace(t *testing.T) {
	t.Parallel()
	const (
		theirs = "  github.com/go-zookeeper/zk.(*Conn).recvLoop()\n      conn.go:1 +0x1\n"
		ours   = "  github.com/holdfast-go/holdfast/zklock/internal/zkconn.(*Link).Retry()\n      calls.go:1 +0x1\n"
	)
	report := func(first, second string) string {
		return "==================\nWARNING: DATA RACE\nRead at 0x01 by goroutine 7:\n" + first +
			"\nPrevious write at 0x01 by goroutine 8:\n" + second + "\nGoroutine 7 (running) created at:\n" + ours + "==================\n"
	}
	for _, test := range []struct {
		log  string
		want bool
	}{
		{"a line\n", false},
		{report(theirs, theirs), false},
		{report("  runtime.mapaccess1()\n      map.go:1 +0x1\n"+theirs, theirs), false},
		{report(ours, theirs), true},
		{report(theirs, ours), true},
		{report(theirs, theirs) + report(ours, ours), true},
	} {
		if got := foreignRace(test.log) != ""; got != test.want {
			t.Errorf("%v of\n%s", got, test.log)
		}
	}
}
