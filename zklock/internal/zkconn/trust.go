package zkconn

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// trust decides which requests of one connection are known to have kept the session alive.
//
// The leader alone expires sessions. A follower answers pings and reads by itself, and goes on with that when it has lost the leader.
// So a renewal takes three stages (docs/design/zookeeper.md has the proof):
//
//	r  a request, answered at a                   it is in the follower's table, or was
//	s  a sync or a write, sent at a + window or   the follower has read a ping of the leader that was queued
//	   later, and answered at b                   after a: the table is on its way
//	w  a write, sent at b or later, and           the leader has read the table, and still was the leader:
//	   acknowledged                               the session is renewed from the sending of r on
//
// Beginning a session is a write. Resuming one is not: a leader that has lost its followers says yes too. The first acknowledged
// write after that renews the session from the resumption on, because servers hang up when they get another leader.
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

// note takes in an answered request. It returns the moment from which the session's timeout may be counted; zero if the answer shows none.
func (t *trust) note(x exchange, p proof) (renewed driver.Instant) {
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
	// A busy session sends thousands a second; a few per window are enough, and leaving out the later ones errs on the safe side.
	if n := len(t.answers); p >= heard && (n == 0 || x.read.Sub(t.answers[n-1].read) >= t.grain) {
		t.answers = bounded(append(t.answers, x))
	}
	return renewed
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
