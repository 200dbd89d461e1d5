package integration_test

import (
	"strings"
	"testing"
	"time"
)

// fleetStory is a list of process reports, in milliseconds; name is "go..." or "node...".
type fleetStory []struct {
	name, what string
	at         int64
	token      uint64
	sent       int64
}

// tell returns a witness that has seen the story.
func (s fleetStory) tell(lease time.Duration) *witness {
	w := newWitness(lease)
	for _, r := range s {
		language := fleetGo
		if strings.HasPrefix(r.name, "node") {
			language = fleetNode
		}
		if r.what == fleetKilled {
			w.ended(r.name)
			continue
		}
		w.see(r.name, language, fleetReport{
			What: r.what, At: r.at * 1e6, Key: "k", Token: r.token, Sent: r.sent * 1e6,
		})
	}
	return w
}

// TestFleetWitness plants violations: a witness that misses one proves nothing.
func TestFleetWitness(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	for _, test := range []struct {
		name  string
		lease time.Duration
		story fleetStory
		want  []string // parts of the violations, in order
	}{
		{
			name: "one after the other", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 100, token: 7},
				{name: "go1", what: fleetHolding, at: 200, token: 7},
				{name: "go1", what: fleetReleased, at: 201, token: 7},
				{name: "node1", what: fleetAcquired, at: 300, sent: 290, token: 8},
				{name: "node1", what: fleetHolding, at: 400, token: 8},
				{name: "node1", what: fleetReleased, at: 400, token: 8},
				{name: "go1", what: fleetAcquired, at: 400, token: 9},
			},
		},
		{
			name: "overlap", lease: lease,
			story: fleetStory{
				{name: "node1", what: fleetAcquired, at: 100, sent: 90, token: 7},
				{name: "go1", what: fleetAcquired, at: 150, token: 8},
				{name: "node1", what: fleetHolding, at: 200, token: 7},
			},
			want: []string{"two hold k"},
		},
		{
			name: "overlap with a hold that began before another", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 100, token: 7},
				{name: "go1", what: fleetHolding, at: 900, token: 7},
				{name: "go2", what: fleetAcquired, at: 200, token: 8},
				{name: "go2", what: fleetHolding, at: 300, token: 8},
				{name: "go3", what: fleetAcquired, at: 400, token: 9},
			},
			want: []string{"two hold k: Go go1", "two hold k: Go go1"},
		},
		{
			name: "overlap of Node with Node", lease: lease,
			story: fleetStory{
				{name: "node1", what: fleetAcquired, at: 100, sent: 90, token: 7},
				{name: "node2", what: fleetAcquired, at: 150, sent: 140, token: 8},
				{name: "node1", what: fleetHolding, at: 200, token: 7},
			},
			want: []string{"two hold k"},
		},
		{
			name: "overlap of locks that never expire", lease: 0,
			story: fleetStory{
				{name: "node1", what: fleetAcquired, at: 100, sent: 90},
				{name: "go1", what: fleetAcquired, at: 60_000},
				{name: "node1", what: fleetHolding, at: 60_001},
			},
			want: []string{"two hold k"},
		},
		{
			name: "token repeated", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 100, token: 7},
				{name: "go1", what: fleetReleased, at: 110, token: 7},
				{name: "node1", what: fleetAcquired, at: 200, sent: 190, token: 7},
			},
			want: []string{"do not rise", "have token 7"},
		},
		{
			name: "token going back", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 100, token: 7},
				{name: "go1", what: fleetReleased, at: 110, token: 7},
				{name: "node1", what: fleetAcquired, at: 200, sent: 190, token: 6},
			},
			want: []string{"do not rise"},
		},
		{
			name: "token below one before the last", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 100, token: 7},
				{name: "go1", what: fleetReleased, at: 110, token: 7},
				{name: "go2", what: fleetAcquired, at: 200, token: 3},
				{name: "go2", what: fleetReleased, at: 210, token: 3},
				{name: "go1", what: fleetAcquired, at: 300, token: 5},
			},
			want: []string{"do not rise", "do not rise"},
		},
		{
			name: "Node believes too long", lease: lease,
			story: fleetStory{
				{name: "node1", what: fleetAcquired, at: 100, sent: 90, token: 7},
				{name: "node1", what: fleetRenewed, at: 1200, sent: 1000, token: 7},
				{name: "go1", what: fleetAcquired, at: 6001, token: 8},
				{name: "node1", what: fleetHolding, at: 7000, token: 7},
				{name: "node1", what: fleetLost, at: 7000, token: 7},
			},
		},
		{
			name: "taken from Node too early", lease: lease,
			story: fleetStory{
				{name: "node1", what: fleetAcquired, at: 100, sent: 90, token: 7},
				{name: "node1", what: fleetRenewed, at: 1200, sent: 1000, token: 7},
				{name: "go1", what: fleetAcquired, at: 5999, token: 8},
				{name: "node1", what: fleetHolding, at: 7000, token: 7},
			},
			want: []string{"two hold k"},
		},
		{
			name: "heartbeats of another hold excuse nothing", lease: lease,
			story: fleetStory{
				{name: "node1", what: fleetAcquired, at: 100, sent: 90, token: 7},
				{name: "node1", what: fleetRenewed, at: 200, sent: 150, token: 6},
				{name: "go1", what: fleetAcquired, at: 5089, token: 8},
				{name: "node1", what: fleetHolding, at: 5100, token: 7},
			},
			want: []string{"two hold k"},
		},
		{
			name: "Node hears of its lock when that is over", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 5200, token: 8},
				{name: "go1", what: fleetHolding, at: 5500, token: 8},
				{name: "node1", what: fleetAcquired, at: 5300, sent: 100, token: 7},
				{name: "node1", what: fleetHolding, at: 5400, token: 7},
			},
		},
		{
			name: "a token is not excused with its hold", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 5200, token: 7},
				{name: "node1", what: fleetAcquired, at: 5300, sent: 100, token: 7},
			},
			want: []string{"have token 7"},
		},
		{
			name: "Go believes too long", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 100, sent: 90, token: 7},
				{name: "go1", what: fleetRenewed, at: 1200, sent: 1000, token: 7},
				{name: "node1", what: fleetAcquired, at: 6001, sent: 6000, token: 8},
				{name: "go1", what: fleetHolding, at: 7000, token: 7},
			},
			want: []string{"two hold k: Go go1"},
		},
		{
			name: "the killed hold nothing", lease: lease,
			story: fleetStory{
				{name: "go1", what: fleetAcquired, at: 100, token: 7},
				{name: "go1", what: fleetHolding, at: 120, token: 7},
				{name: "go1", what: fleetKilled},
				{name: "node1", what: fleetAcquired, at: 121, sent: 110, token: 8},
			},
		},
		{
			name: "what the killed had shown before counts", lease: lease,
			story: fleetStory{
				{name: "node1", what: fleetAcquired, at: 121, sent: 110, token: 8},
				{name: "go1", what: fleetAcquired, at: 100, token: 7},
				{name: "go1", what: fleetHolding, at: 125, token: 7},
				{name: "go1", what: fleetKilled},
			},
			want: []string{"two hold k"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := test.story.tell(test.lease)
			found := w.violations(test.lease > 0)
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

func TestFleetFigures(t *testing.T) {
	t.Parallel()
	f := fleetStory{
		{name: "go1", what: fleetAcquired, at: 100, token: 7},
		{name: "go1", what: fleetKilled},
		{name: "node1", what: fleetAcquired, at: 200, sent: 190, token: 8},
		{name: "node1", what: fleetHolding, at: 6000, token: 8},
		{name: "node1", what: fleetLost, at: 6000, token: 8},
		{name: "go2", what: fleetAcquired, at: 6100, token: 9},
		{name: "go2", what: fleetReleased, at: 6100, token: 9},
		{name: "go2", what: fleetAcquired, at: 6200, token: 10},
	}.tell(5 * time.Second).figures()
	const want = "holds: 3 Go, 1 Node; handovers: 1 to Go, 1 to Node, of which from the killed: 0 and 1; " +
		"lost: 0 Go, 1 Node; excused: 1 Node; longest waits: 6.2s Go, 200ms Node, after a crash 100ms"
	if got := f.String(); got != want {
		t.Errorf("figures are\n%s, want\n%s", got, want)
	}
}
