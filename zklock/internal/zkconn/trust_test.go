package zkconn

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// play feeds exchanges, each "sent-read kind" in milliseconds from the beginning, and
// compares what each proves; 0 is nothing.
func play(t *testing.T, rule *trust, steps []step) {
	t.Helper()
	for i, x := range steps {
		got := rule.note(exchange{at(x.sent), at(x.read)}, x.shows)
		if got.IsZero() != (x.renewed == 0) || !got.IsZero() && got != at(x.renewed) {
			t.Errorf("answer %d, %+v: renewed at %v", i, x, got.Sub(at(0)))
		}
	}
}

type step struct {
	sent, read int
	shows      proof
	renewed    int
}

// TestTrust tests the rule behind hazards Z5 and Z16: which requests have provably kept a
// session alive. See trust. Each line refutes some simpler rule.
func TestTrust(t *testing.T) {
	const timeout = 4000 * time.Millisecond // the window is 1125 ms
	for name, test := range map[string]struct {
		timeout, tick time.Duration
		steps         []step
	}{
		"an answered ping proves nothing": {steps: []step{
			{10, 11, heard, 0}, {2000, 2001, heard, 0}, {5000, 5001, heard, 0},
		}},
		"a write alone proves nothing, however late: the leader's pings may all be on their way": {steps: []step{
			{100, 101, heard, 0}, {3000, 3001, written, 0},
		}},
		"a sync alone proves nothing": {steps: []step{
			{100, 101, heard, 0}, {1300, 1301, synced, 0}, {3000, 3001, synced, 0},
		}},
		"a sync a window after, then a write": {steps: []step{
			{100, 200, heard, 0}, {1325, 1326, synced, 0}, {1326, 1327, written, 100},
		}},
		"a sync less than a window after shows nothing": {steps: []step{
			{100, 200, heard, 0}, {1324, 1326, synced, 0}, {4000, 4001, written, 0},
		}},
		"a write is as good as a sync": {steps: []step{
			{100, 200, heard, 0}, {1325, 1330, written, 0}, {1330, 1331, written, 100},
		}},
		"the second write must be sent after the answer to the sync": {steps: []step{
			{100, 200, heard, 0}, {1325, 1400, synced, 0}, {1399, 1500, written, 0}, {1400, 1501, written, 100},
		}},
		"an answer to nothing but credentials is no beginning": {steps: []step{
			{100, 101, nothing, 0}, {1300, 1301, synced, 0}, {1302, 1303, written, 0},
		}},
		"the newest counts": {steps: []step{
			{100, 101, heard, 0},
			{300, 301, heard, 0},
			{1400, 1401, heard, 0},
			{2000, 2001, synced, 0},
			{2002, 2003, written, 300},
		}},
		"it counts when the sync was sent, not when it was answered": {steps: []step{
			{100, 101, heard, 0}, {500, 5000, synced, 0}, {5001, 5002, written, 0},
		}},
		"it counts when the first was answered, not when it was sent": {steps: []step{
			{100, 900, heard, 0}, {1500, 1501, synced, 0}, {1502, 1503, written, 0},
		}},
		"it goes on": {steps: []step{
			{100, 101, heard, 0},
			{1300, 1301, synced, 0},
			{1301, 1302, written, 100},
			{2500, 2501, synced, 0},
			{2501, 2502, written, 1300},
			{3700, 3701, synced, 0},
			{3701, 3702, written, 2500},
		}},
		"late replies to early writes prove less, not more": {steps: []step{
			{100, 101, heard, 0},
			{1300, 1301, synced, 0},
			{2500, 2501, synced, 0},
			{2501, 2502, written, 1300},
			{1400, 2600, written, 0},
		}},
		"half a tick, where the session is short": {timeout: 200 * time.Millisecond, tick: 400 * time.Millisecond, steps: []step{
			{10, 11, heard, 0}, {235, 236, synced, 0}, {236, 237, written, 0}, {246, 247, synced, 0}, {247, 248, written, 10},
		}},
		"a quarter of the session, where the tick is short": {tick: time.Millisecond, steps: []step{
			{10, 11, heard, 0}, {1135, 1135, synced, 0}, {1136, 1137, synced, 0}, {1137, 1138, written, 10},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			length := timeout
			if test.timeout > 0 {
				length = test.timeout
			}
			play(t, openedTrust(zktimes.Of(length, 0, test.tick, 0), driver.Instant{}), test.steps)
		})
	}
}

// exact is the rule without bounds: it remembers every reply.
type exact struct {
	window          time.Duration
	answers, tables []exchange
}

func (e *exact) note(x exchange, p proof) (renewed driver.Instant) {
	// They are in the order in which they were sent.
	newest := func(all []exchange, after time.Duration) driver.Instant {
		for _, old := range slices.Backward(all) {
			if x.sent.Sub(old.read) >= after {
				return old.sent
			}
		}
		return driver.Instant{}
	}
	if p == written {
		renewed = newest(e.tables, 0)
	}
	if p >= synced {
		if table := newest(e.answers, e.window); !table.IsZero() {
			e.tables = append(e.tables, exchange{table, x.read})
		}
	}
	e.answers = append(e.answers, x)
	return renewed
}

// TestTrustOfABusySession: skipping replies must never make the proof newer than it is, nor much older.
func TestTrustOfABusySession(t *testing.T) {
	const timeout = 4000 * time.Millisecond
	for _, slow := range []int{1, 40, 300} { // for how long an answer is on its way
		busy := openedTrust(standard(timeout), driver.Instant{})
		rule := &exact{window: busy.window}
		for ms := 1; ms < 5_000; ms++ {
			x, shows := exchange{at(ms), at(ms + slow)}, heard
			switch {
			case ms%7 == 0:
				shows = written
			case ms%5 == 0:
				shows = synced
			}
			got := busy.note(x, shows)
			want := rule.note(x, shows)
			if got.IsZero() != want.IsZero() {
				t.Fatalf("at %d ms: proved %v, the rule without gaps %v", ms, !got.IsZero(), !want.IsZero())
			}
			if behind := want.Sub(got); !want.IsZero() && (behind < 0 || behind > 2*timeout/64) {
				t.Fatalf("at %d ms: %v behind the rule without gaps", ms, behind)
			}
		}
		if n, m := len(busy.answers), len(busy.tables); n > 300 || m > 300 {
			t.Errorf("%d and %d remembered", n, m)
		}
	}
}

// TestTrustOfASessionThatWritesNothing: memory is bounded, and a late first write still proves something.
func TestTrustOfASessionThatWritesNothing(t *testing.T) {
	rule := openedTrust(standard(4*time.Second), driver.Instant{})
	for ms := 1; ms < 100_000; ms += 20 {
		rule.note(exchange{at(ms), at(ms + 1)}, heard)
		rule.note(exchange{at(ms), at(ms + 1)}, synced)
		if n, m := len(rule.answers), len(rule.tables); n > 300 || m > 300 {
			t.Fatalf("%d and %d remembered", n, m)
		}
	}
	got := rule.note(exchange{at(100_000), at(100_001)}, written)
	if want := at(100_000 - 1125); got.Sub(want) > 0 || want.Sub(got) > 200*time.Millisecond {
		t.Errorf("renewed at %v, want just before %v", got.Sub(at(0)), want.Sub(at(0)))
	}
}

// TestTrustOfAResumedSession: the first acknowledged write shows that the leader that
// resumed the session was still the leader, and knew of the session then.
func TestTrustOfAResumedSession(t *testing.T) {
	play(t, openedTrust(standard(4*time.Second), at(100)), []step{
		{160, 170, heard, 0},
		{180, 190, synced, 0},
		{200, 210, written, 100},
		{1200, 1210, written, 100},
		{1300, 1310, synced, 0},
		{1310, 1320, written, 160},
		{2500, 2510, synced, 0},
		{2510, 2520, written, 1300},
	})
}
