package zklock

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// trust decides which requests of one connection are known to have kept the
// session alive.
//
// That a server acknowledged a ping, or a read, does not show it: a follower
// answers those by itself and only notes the session in a table, which the
// leader, who expires sessions, collects with its own ping to the follower,
// twice a tick. A follower that has lost its leader goes on answering.
//
// That a write was acknowledged shows that its quorum, and so the leader, could
// be reached after the moment s at which the write was sent. So whatever the
// follower had noted a collection period before s has been collected by then:
//
//	renewed at = sending of the newest request acknowledged before s - window
//	window     = a quarter of the session timeout, at least half a tick
//
// The servers clamp a session timeout to at least two ticks, so that a quarter
// of it is at least half a tick.
//
// Beginning a session is itself such a write. Resuming one on a new connection
// is not: it is a leader who says yes, and starts the session's timer anew, but
// one that has lost its followers says so too, for up to syncLimit ticks. The
// first acknowledged write after it shows that the leader still was one, and,
// as a server hangs up on its clients when it gets another leader, the same one.
// So it renews the session from the resumption on, without a window.
type trust struct {
	window time.Duration
	opened holdfast.Instant // when the session was asked for on this connection
	acked  []ack            // oldest first, at least grain apart
	grain  time.Duration
}

// ack is a request and the moment at which its reply was read.
type ack struct{ sent, read holdfast.Instant }

func newTrust(timeout, tick time.Duration, opened holdfast.Instant) *trust {
	return &trust{window: max(timeout/4, tick/2), opened: opened, grain: timeout / 64}
}

// note takes in an acknowledged request. If it was a quorum write, it returns
// the moment from which the session's timeout may be counted, if there is one.
func (t *trust) note(a ack, write bool) (holdfast.Instant, bool) {
	var renewed holdfast.Instant
	if write {
		renewed = t.opened
		for i := len(t.acked) - 1; i >= 0; i-- {
			if a.sent.Sub(t.acked[i].read) >= t.window {
				renewed = t.acked[i].sent
				t.acked = t.acked[i:] // older ones will never be the newest
				break
			}
		}
	}
	// A busy session acknowledges thousands a second; a few per window are
	// enough, and leaving out the later ones errs on the safe side.
	if n := len(t.acked); n == 0 || a.read.Sub(t.acked[n-1].read) >= t.grain {
		t.acked = append(t.acked, a)
	}
	if most := 256; len(t.acked) > most {
		t.acked = append(t.acked[:0:0], t.acked[len(t.acked)-most/2:]...)
	}
	return renewed, !renewed.IsZero()
}
