package zkconn

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// trust decides which requests of one connection are known to have kept the
// session alive.
//
// That a server acknowledged a ping, or a read, does not show it: a follower
// answers those by itself and only notes the session in a table, which goes to
// the leader, who expires sessions, when the follower reads the leader's next ping.
// A follower that has lost its leader goes on answering. But whatever the leader
// has for a follower goes through one queue, in order: its pings, and what
// completes writes and syncs. And whatever a follower has for its leader goes
// through another: tables, and requests. So there are three stages:
//
//	r  a request, answered at a        it is in the follower's table, or was
//	s  a sync or a write, sent at      before the follower completed s, it has read
//	   a + window or later, and        each ping that the leader queued before that,
//	   answered at b                   one of them after a: the table is on its way
//	w  a write, sent at b or later,    the leader has read the table before w, and
//	   and acknowledged                still was the leader
//
//	renewed at = sending of r
//	window     = a quarter of the session timeout, at least half a tick, and an eighth more
//
// Messages may take any time. What it leans on is that the leader, by its own clock,
// queues pings less than a window apart. It does so every half tick, and a bit,
// which the eighth is for; servers clamp a session timeout to at least two ticks.
//
// Beginning a session is itself a write. Resuming one on a new connection is not: it
// is a leader who says yes, and starts the session's timer anew, but one that has
// lost its followers says so too, for up to syncLimit ticks. The first acknowledged
// write after it shows that the leader still was one, and, as a server hangs up on
// its clients when it gets another leader, the same one. So it renews the session
// from the resumption on, without a window.
type trust struct {
	window  time.Duration
	opened  driver.Instant // when the session was asked for on this connection
	answers []exchange     // of any request; oldest first, at least grain apart
	tables  []exchange     // the sending of r, and b; oldest first
	grain   time.Duration
}

// exchange is the sending of a request, and the moment at which a reply was read:
// its own, or that of the one which shows what became of it.
type exchange struct{ sent, read driver.Instant }

// proof is what the reply to a request can show.
type proof int

const (
	nothing proof = iota // not even that the server has noted the session
	heard                // that it has
	synced               // and that it has read what the leader had sent
	written              // and that the leader has read what the server had sent
)

func newTrust(t *zktimes.Times, opened driver.Instant) *trust {
	return &trust{window: t.Window, opened: opened, grain: t.Grain}
}

// note takes in an answered request. It returns the moment from which the session's
// timeout may be counted, if the answer shows one.
func (t *trust) note(x exchange, p proof) (driver.Instant, bool) {
	var renewed driver.Instant
	if p == written {
		renewed = t.opened
		if i := last(t.tables, x.sent); i >= 0 {
			renewed = t.tables[i].sent
			t.tables = t.tables[i:] // older ones will never be the newest
		}
	}
	if p >= synced {
		if i := last(t.answers, x.sent.Add(-t.window)); i >= 0 {
			t.answers = t.answers[i:]
			if n := len(t.tables); n == 0 || t.answers[0].sent.Sub(t.tables[n-1].sent) > 0 {
				t.tables = bounded(append(t.tables, exchange{t.answers[0].sent, x.read}))
			}
		}
	}
	// A busy session sends thousands a second; a few per window are enough, and
	// leaving out the later ones errs on the safe side.
	if n := len(t.answers); p >= heard && (n == 0 || x.read.Sub(t.answers[n-1].read) >= t.grain) {
		t.answers = bounded(append(t.answers, x))
	}
	return renewed, !renewed.IsZero()
}

// last returns the index of the last exchange that was over at a moment, or -1.
func last(all []exchange, at driver.Instant) int {
	for i := len(all) - 1; i >= 0; i-- {
		if at.Sub(all[i].read) >= 0 {
			return i
		}
	}
	return -1
}

// bounded leaves out the oldest, if there are many.
func bounded(all []exchange) []exchange {
	if most := 256; len(all) > most {
		all = append(all[:0:0], all[len(all)-most/2:]...)
	}
	return all
}
