package zklock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// at is a moment some milliseconds after the beginning of a test.
func at(ms int) holdfast.Instant {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return holdfast.Instant{Instant: clock.Instant{Mono: begin, Wall: begin}.Add(time.Duration(ms) * time.Millisecond)}
}

// exchange is a request and its reply, in milliseconds from the beginning.
type exchange struct {
	sent, read int
	write      bool
	renewed    int // what it proves; 0: nothing
}

// TestTrust guards the rule behind hazard Z5: which requests are known to have
// kept a session alive. See trust. Each line breaks some simpler rule.
func TestTrust(t *testing.T) {
	const timeout = 4000 * time.Millisecond // a quarter of it: 1000 ms
	for name, test := range map[string]struct {
		timeout, tick time.Duration
		exchanges     []exchange
	}{
		"an acknowledged ping proves nothing": {exchanges: []exchange{
			{sent: 10, read: 11}, {sent: 2000, read: 2001}, {sent: 5000, read: 5001},
		}},
		"a write does not prove itself, nor what came just before": {exchanges: []exchange{
			{sent: 100, read: 101, write: true}, {sent: 1099, read: 1100, write: true},
		}},
		"a write proves what was acknowledged a window before it was sent": {exchanges: []exchange{
			{sent: 100, read: 200}, {sent: 1199, read: 1199, write: true}, {sent: 1200, read: 1201, write: true, renewed: 100},
		}},
		"the newest counts": {exchanges: []exchange{
			{sent: 100, read: 101},
			{sent: 300, read: 301},
			{sent: 1200, read: 1201},
			{sent: 2000, read: 2001, write: true, renewed: 300},
		}},
		"it counts when the write was sent, not when it was acknowledged": {exchanges: []exchange{
			{sent: 100, read: 101}, {sent: 500, read: 5000, write: true},
		}},
		"it counts when the other was acknowledged, not when it was sent": {exchanges: []exchange{
			{sent: 100, read: 900}, {sent: 1500, read: 1501, write: true},
		}},
		"it goes on": {exchanges: []exchange{
			{sent: 100, read: 101},
			{sent: 1200, read: 1201, write: true, renewed: 100},
			{sent: 2400, read: 2401, write: true, renewed: 1200},
			{sent: 3600, read: 3601, write: true, renewed: 2400},
		}},
		"late replies to early writes prove less, not more": {exchanges: []exchange{
			{sent: 100, read: 101},
			{sent: 1200, read: 1201},
			{sent: 2400, read: 2401, write: true, renewed: 1200},
			{sent: 1300, read: 2500, write: true},
		}},
		"half a tick, where the session is short": {timeout: 200 * time.Millisecond, tick: 400 * time.Millisecond, exchanges: []exchange{
			{sent: 10, read: 11}, {sent: 210, read: 211, write: true}, {sent: 211, read: 212, write: true, renewed: 10},
		}},
		"a quarter of the session, where the tick is short": {tick: time.Millisecond, exchanges: []exchange{
			{sent: 10, read: 11}, {sent: 1010, read: 1011, write: true}, {sent: 1011, read: 1012, write: true, renewed: 10},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			length := timeout
			if test.timeout > 0 {
				length = test.timeout
			}
			rule := newTrust(length, test.tick, holdfast.Instant{})
			for i, x := range test.exchanges {
				got, ok := rule.note(ack{at(x.sent), at(x.read)}, x.write)
				if ok != (x.renewed > 0) || (ok && got != at(x.renewed)) {
					t.Errorf("exchange %d, %+v: renewed at %v (%v)", i, x, got.Sub(at(0)), ok)
				}
			}
		})
	}
}

// TestTrustOfABusySession: leaving out what is acknowledged in quick succession
// must never make the proof newer than it is, nor much older.
func TestTrustOfABusySession(t *testing.T) {
	const timeout = 4000 * time.Millisecond
	busy := newTrust(timeout, 0, holdfast.Instant{})
	var all []ack
	for ms := 1; ms < 15_000; ms++ {
		a := ack{at(ms), at(ms + 1)}
		write := ms%7 == 0
		got, ok := busy.note(a, write)
		if ok && !write {
			t.Fatalf("at %d ms something that was no write proved %v", ms, got.Sub(at(0)))
		}
		if write {
			var exact holdfast.Instant
			for i := len(all) - 1; i >= 0; i-- {
				if a.sent.Sub(all[i].read) >= timeout/4 {
					exact = all[i].sent
					break
				}
			}
			if ok == exact.IsZero() {
				t.Fatalf("at %d ms: proved %v, the rule without gaps %v", ms, ok, !exact.IsZero())
			}
			if behind := exact.Sub(got); ok && (behind < 0 || behind > 2*timeout/64) {
				t.Fatalf("at %d ms: %v behind the rule without gaps", ms, behind)
			}
		}
		all = append(all, a)
		if len(all) > 3000 {
			all = all[1000:]
		}
	}
	if n := len(busy.acked); n > 300 {
		t.Errorf("%d remembered", n)
	}
}

// TestTrustOfASessionThatOnlyReads: the memory is bounded, and the first write
// after a long time has something to prove.
func TestTrustOfASessionThatOnlyReads(t *testing.T) {
	rule := newTrust(4*time.Second, 0, holdfast.Instant{})
	for ms := 1; ms < 100_000; ms += 20 {
		rule.note(ack{at(ms), at(ms + 1)}, false)
		if n := len(rule.acked); n > 300 {
			t.Fatalf("%d remembered", n)
		}
	}
	got, ok := rule.note(ack{at(100_000), at(100_001)}, true)
	if want := at(99_000); !ok || got.Sub(want) > 0 || want.Sub(got) > 200*time.Millisecond {
		t.Errorf("renewed at %v (%v), want just before %v", got.Sub(at(0)), ok, want.Sub(at(0)))
	}
}

// TestTrustOfAResumedSession: the first write that is acknowledged shows that
// the leader who said yes was one, and had heard of the session then.
func TestTrustOfAResumedSession(t *testing.T) {
	rule := newTrust(4*time.Second, 0, at(100))
	for i, x := range []exchange{
		{sent: 160, read: 170},
		{sent: 180, read: 190, write: true, renewed: 100},
		{sent: 1100, read: 1110, write: true, renewed: 100},
		{sent: 1170, read: 1180, write: true, renewed: 160},
		{sent: 2200, read: 2210, write: true, renewed: 1170},
	} {
		if got, ok := rule.note(ack{at(x.sent), at(x.read)}, x.write); ok != (x.renewed > 0) || (ok && got != at(x.renewed)) {
			t.Errorf("exchange %d, %+v: renewed at %v (%v)", i, x, got.Sub(at(0)), ok)
		}
	}
}
