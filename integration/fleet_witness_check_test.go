package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// tell returns a witness that has seen a story: reports of the form "process what at token sent", times in milliseconds.
// What is missing at the end is 0. Names of processes begin with their language.
func tell(lease time.Duration, story string) *witness {
	w := newWitness(lease)
	for report := range strings.SplitSeq(story, "; ") {
		var process string
		r := fleetReport{Key: "k"}
		_, _ = fmt.Sscan(report, &process, &r.What, &r.At, &r.Token, &r.Sent)
		r.At, r.Sent = r.At*1e6, r.Sent*1e6
		switch {
		case r.What == fleetKilled:
			w.ended(process)
		case strings.HasPrefix(process, "node"):
			w.see(process, fleetNode, r)
		default:
			w.see(process, fleetGo, r)
		}
	}
	return w
}

// TestFleetWitness injects violations: a witness that misses one proves nothing.
func TestFleetWitness(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	for _, test := range []struct {
		name  string
		lease time.Duration
		story string
		want  []string // parts of the violations, in order
	}{
		{
			"one after the other", lease,
			"go1 acquired 100 7; go1 holding 200 7; go1 released 201 7; " +
				"node1 acquired 300 8 290; node1 holding 400 8; node1 released 400 8; go1 acquired 400 9", nil,
		},
		{
			"overlap", lease,
			"node1 acquired 100 7 90; go1 acquired 150 8; node1 holding 200 7",
			[]string{"two hold k"},
		},
		{
			"overlap with a hold that began before another", lease,
			"go1 acquired 100 7; go1 holding 900 7; go2 acquired 200 8; go2 holding 300 8; go3 acquired 400 9",
			[]string{"two hold k: Go go1", "two hold k: Go go1"},
		},
		{
			"overlap of Node with Node", lease,
			"node1 acquired 100 7 90; node2 acquired 150 8 140; node1 holding 200 7",
			[]string{"two hold k"},
		},
		{
			"overlap of locks that never expire", 0,
			"node1 acquired 100 0 90; go1 acquired 60000; node1 holding 60001",
			[]string{"two hold k"},
		},
		{
			"token repeated", lease,
			"go1 acquired 100 7; go1 released 110 7; node1 acquired 200 7 190",
			[]string{"do not rise", "have token 7"},
		},
		{
			"token going back", lease,
			"go1 acquired 100 7; go1 released 110 7; node1 acquired 200 6 190",
			[]string{"do not rise"},
		},
		{
			"token below one before the last", lease,
			"go1 acquired 100 7; go1 released 110 7; go2 acquired 200 3; go2 released 210 3; go1 acquired 300 5",
			[]string{"do not rise", "do not rise"},
		},
		{
			"Node believes too long", lease,
			"node1 acquired 100 7 90; node1 renewed 1200 7 1000; go1 acquired 6001 8; node1 holding 7000 7; node1 lost 7000 7", nil,
		},
		{
			"taken from Node too early", lease,
			"node1 acquired 100 7 90; node1 renewed 1200 7 1000; go1 acquired 5999 8; node1 holding 7000 7",
			[]string{"two hold k"},
		},
		{
			"heartbeats of another hold excuse nothing", lease,
			"node1 acquired 100 7 90; node1 renewed 200 6 150; go1 acquired 5089 8; node1 holding 5100 7",
			[]string{"two hold k"},
		},
		{
			"Node hears of its lock when that is over", lease,
			"go1 acquired 5200 8; go1 holding 5500 8; node1 acquired 5300 7 100; node1 holding 5400 7", nil,
		},
		{
			"a token is not excused with its hold", lease,
			"go1 acquired 5200 7; node1 acquired 5300 7 100",
			[]string{"have token 7"},
		},
		{
			"Go believes too long", lease,
			"go1 acquired 100 7 90; go1 renewed 1200 7 1000; node1 acquired 6001 8 6000; go1 holding 7000 7",
			[]string{"two hold k: Go go1"},
		},
		{
			"the killed hold nothing", lease,
			"go1 acquired 100 7; go1 holding 120 7; go1 killed; node1 acquired 121 8 110", nil,
		},
		{
			"what the killed had shown before counts", lease,
			"node1 acquired 121 8 110; go1 acquired 100 7; go1 holding 125 7; go1 killed",
			[]string{"two hold k"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := tell(test.lease, test.story).violations(test.lease > 0)
			if len(found) != len(test.want) {
				t.Fatalf("found %q, want %q", found, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(found[i], want) {
					t.Errorf("found %q, want %q", found[i], want)
				}
			}
		})
	}
}
