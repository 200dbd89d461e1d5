package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestFleetWitness plants violations: a witness that misses one, or an observer that excuses too much, proves nothing. A story has
// reports of the form "process what at token sent", with times in milliseconds, and the record of a node of an observer: "token seen
// gone", with an x if its session expired.
func TestFleetWitness(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	what := map[string]string{
		"a": fleetAcquired, "h": fleetHolding, "r": fleetReleased, "n": fleetRenewed, "l": fleetLost, "k": fleetKilled,
	}
	kinds := map[string]fleetLanguage{"node": fleetNode, "go": fleetGo, "cur": peerCurator, "zk": peerZklock, "kaz": peerKazoo}
	const twoHold = "first a 100 7; zk2 a 500 8; zk2 h 600 8; first h 900 7"
	for _, test := range []struct {
		name  string
		lease time.Duration
		story string
		nodes string
		want  string // parts of the violations, in order
	}{
		{"one after the other", lease, "go1 a 100 7; go1 h 200 7; go1 r 201 7; node1 a 300 8 290; node1 r 400 8; go1 a 400 9", "", ""},
		{"overlap", lease, "node1 a 100 7 90; go1 a 150 8; node1 h 200 7", "", "two hold k"},
		{"overlap with a longer hold", lease, "go1 a 100 7; go1 h 900 7; go2 a 200 8; go2 h 300 8; go3 a 400 9", "", "k: Go go1; k: Go go1"},
		{"overlap of Node with Node", lease, "node1 a 100 7 90; node2 a 150 8 140; node1 h 200 7", "", "two hold k"},
		{"overlap of locks that never expire", 0, "node1 a 100 0 90; go1 a 60000; node1 h 60001", "", "two hold k"},
		{"token repeated", lease, "go1 a 100 7; go1 r 110 7; node1 a 200 7 190", "", "do not rise; have token 7"},
		{"token below an earlier one", lease, "go1 a 100 7; go1 r 110 7; go2 a 200 3; go2 r 210 3; go1 a 300 5", "", "do not rise; do not rise"},
		{"Node believes too long", lease, "node1 a 100 7 90; node1 n 1200 7 1000; go1 a 6001 8; node1 l 7000 7", "", ""},
		{"taken from Node too early", lease, "node1 a 100 7 90; node1 n 1200 7 1000; go1 a 5999 8; node1 h 7000 7", "", "two hold k"},
		{"heartbeats of another hold", lease, "node1 a 100 7 90; node1 n 200 6 150; go1 a 5089 8; node1 h 5100 7", "", "two hold k"},
		{"Node learns too late of its lock", lease, "go1 a 5200 8; go1 h 5500 8; node1 a 5300 7 100; node1 h 5400 7", "", ""},
		{"a token is not excused with its hold", lease, "go1 a 5200 7; node1 a 5300 7 100", "", "have token 7"},
		{"Go believes too long", lease, "go1 a 100 7 90; go1 n 1200 7 1000; node1 a 6001 8 6000; go1 h 7000 7", "", "two hold k: Go go1"},
		{"the killed hold nothing", lease, "go1 a 100 7; go1 h 120 7; go1 k; node1 a 121 8 110", "", ""},
		{"what the killed had shown before counts", lease, "node1 a 121 8 110; go1 a 100 7; go1 h 125 7; go1 k", "", "two hold k"},
		{"a peer's session expired in time", 0, strings.ReplaceAll(twoHold, "first", "cur1"), "7 400 410 x", ""},
		{"granted while the node was there", 0, strings.ReplaceAll(twoHold, "first", "cur1"), "7 501 510 x", "two hold k: Curator"},
		{"the node is still there", 0, strings.ReplaceAll(twoHold, "first", "kaz1"), "7 900 0", "two hold k: kazoo"},
		{"the node was never seen", 0, strings.ReplaceAll(twoHold, "first", "kaz1"), "", "two hold k: kazoo"},
		{"deleted in a live session", 0, strings.ReplaceAll(twoHold, "first", "cur1"), "7 400 410", "robbed; two hold k: Curator"},
		{"given back", 0, strings.ReplaceAll(twoHold, "first", "cur1"), "7 901 910", "two hold k: Curator"},
		{"ours is not excused", 0, strings.ReplaceAll(twoHold, "first", "zk1"), "7 400 410 x", "two hold k: zklock"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, o := newWitness(test.lease), &observer{nodes: make(map[uint64]*observed)}
			for report := range strings.SplitSeq(test.story, "; ") {
				var process string
				r := fleetReport{Key: "k"}
				_, _ = fmt.Sscan(report, &process, &r.What, &r.At, &r.Token, &r.Sent)
				r.What, r.At, r.Sent = what[r.What], r.At*1e6, r.Sent*1e6
				if r.What == fleetKilled {
					w.ended(process)
				} else {
					w.see(process, kinds[strings.TrimRight(process, "0123456789")], r)
				}
			}
			if test.nodes != "" {
				var token uint64
				n, x := &observed{}, ""
				_, _ = fmt.Sscan(test.nodes, &token, &n.seen, &n.gone, &x)
				n.seen, n.gone, n.expired = n.seen*1e6, n.gone*1e6, x == "x"
				o.nodes[token] = n
			}
			var found []string
			for range o.judge(w) {
				found = append(found, "robbed")
			}
			found = append(found, w.violations(test.lease > 0 || strings.Contains(test.story, "zk2"))...)
			want := strings.Split(test.want, "; ")
			if test.want == "" && len(found) > 0 || test.want != "" && len(found) != len(want) {
				t.Fatalf("found %q, want %q", found, test.want)
			}
			for i := range found {
				if !strings.Contains(found[i], want[i]) {
					t.Errorf("found %q, want %q", found, want)
				}
			}
		})
	}
}
