package dynamolock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A pulse is how the table has answered of late, from which the time limit of a
// heartbeat follows.
//
// Behind a connection that has died without a word a request waits for its whole
// limit, and an HTTP client may have ten such connections, which it gives out one
// after the other. So the first limits are short, and each silence in a row, of
// whichever lock, makes the next one longer: what is not a dead connection is
// perhaps a slow table.
type pulse struct {
	mu     sync.Mutex
	silent int            // heartbeats in a row that got no answer in time
	since  driver.Instant // the first of them was sent then
	slow   time.Duration  // what slow answers took of late
}

// heard takes note of an answer, and how long it took.
func (p *pulse) heard(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = 0
	p.slow = max(took, p.slow-p.slow/16)
}

// missed takes note that no answer came in time to what was sent, and returns
// for how long there has been none.
func (p *pulse) missed(sent, now driver.Instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == 0 {
		p.since = sent
	}
	p.silent++
	return now.Sub(p.since)
}

// minBeatTimeout is enough to make a connection and send a request on it, within
// a region.
const minBeatTimeout = 250 * time.Millisecond

// limit is the time limit of the next heartbeat: an eighth of the usual one after
// each of the first silences, up to all of it after ten; but never less than some
// times what answers have taken.
func (p *pulse) limit(usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	part := usual
	switch {
	case p.silent < 4:
		part = usual / 8
	case p.silent < 8:
		part = usual / 4
	case p.silent < 10:
		part = usual / 2
	}
	return min(usual, max(part, minBeatTimeout, 8*p.slow))
}
