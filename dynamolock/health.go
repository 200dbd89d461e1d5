package dynamolock

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// health knows whether the table can be used: every request reports its result. During
// an outage, probes read keys from time to time. Without them, a client that holds nothing
// and waits for nothing would not learn that the outage is over.
//
// What fails while something else is answered is no outage: the partition of its key may have
// failed, or have too much to do, for writes alone perhaps. Otherwise each answer about
// something else would end an outage, and wake everybody who waits for its end, and the next
// failure begin one.
type health struct {
	*engine

	mu      strict.Mutex[strict.Health]
	hiccup  bool                // a connection broke, and nothing was heard since
	failing map[subject]failure // what was not answered since it failed
	heard   [2]hearing          // the last answer, and the last one about another subject
	key     attributes          // of the request that failed last
	well    [2]hearing          // the last answer about a key, and the last one about another key
	out     bool                // there is an outage
	asking  bool                // a probe is to tell whether there is
	healed  chan struct{}       // closed at the end of the outage, or of the next one if there is none
	probes  int
	closed  bool
}

// A subject is what can fail by itself: the reads of a key, or its writes.
type subject struct {
	name  string // of the key
	write bool
}

type failure struct {
	since, last driver.Instant // before the first and the last request of those that failed
	times       int
}

// A hearing is an answer.
type hearing struct {
	subject
	key attributes // nil: of no key
	at  driver.Instant
}

func newHealth(e *engine) *health {
	return &health{engine: e, failing: make(map[subject]failure), healed: make(chan struct{})}
}

// maxFailing is how many failing subjects are known at a time. Another one may begin an outage each time that it fails.
const maxFailing = 4096

func (h *health) subject(op string, key attributes) subject {
	return subject{h.opts.Keys.name(key), key != nil && op != opGet}
}

// up notes that the server has answered a request; without a key, it was for many.
func (h *health) up(op string, key attributes) {
	about, now := h.subject(op, key), h.host.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hiccup = false
	if h.heard[0].subject != about {
		h.heard[1] = h.heard[0]
	}
	h.heard[0] = hearing{about, key, now}
	if key != nil {
		if h.well[0].name != about.name {
			h.well[1] = h.well[0]
		}
		h.well[0] = h.heard[0]
	}
	delete(h.failing, about)
	if !h.out {
		return
	}
	close(h.healed)
	h.out, h.healed = false, make(chan struct{})
	if !h.closed {
		h.host.SetConnected(true) // with mu, so that reports keep their order
	}
}

// down notes that a request for a key failed, and when it was sent. One broken connection is
// not an outage: servers close idle connections, sometimes just when a request is sent on
// them.
func (h *health) down(op string, key attributes, sent driver.Instant, err error) {
	about := h.subject(op, key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.hiccup && brokenConnection(err) {
		h.hiccup = true
		return
	}
	h.key = key
	alone := h.aloneLocked(about, sent)
	if h.out || alone {
		return
	}
	h.out = true
	if h.closed {
		return
	}
	h.host.SetConnected(false)
	h.probeLocked(h.healed, h.times.firstProbe)
}

// aloneLocked notes that a request failed that was sent at some time, and reports whether that is
// its subject's own trouble, because there was an answer about another one since the subject
// began to fail, or shortly before the request was sent. If that is longer ago than a client that
// holds a lock is ever without an answer, a probe is to tell.
func (h *health) aloneLocked(about subject, sent driver.Instant) bool {
	usual := h.opts.Heartbeat + h.opts.Timeout
	f, known := h.failing[about]
	if !known || sent.Sub(f.last) > 2*usual { // it is tried at least once per heartbeat, if at all
		f.since = sent
		if !known && len(h.failing) >= maxFailing {
			for any := range h.failing {
				delete(h.failing, any)
				break
			}
		}
	}
	f.last = sent
	f.times++
	h.failing[about] = f
	other := h.heard[0]
	if other.subject == about {
		other = h.heard[1]
	}
	switch {
	case other.at.IsZero():
		return false
	case other.at.Sub(f.since) <= 0:
		return sent.Sub(other.at) < h.opts.RetryDelay
	case h.host.Now().Sub(other.at) <= usual, h.asking, h.out:
		return true
	}
	if _, fails := h.failing[subject{name: other.name}]; fails || other.key == nil {
		return false // its reads would tell nothing
	}
	h.asking = true
	h.host.AfterFunc(0, func() {
		h.probe(other.key)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asking = false
	})
	return true
}

// probeLocked probes after a delay, and again until this outage is over. It reads in turn the key
// that failed last, and another one, about which there was the last answer: each may fail alone by then.
func (h *health) probeLocked(outage chan struct{}, delay time.Duration) {
	over := func() bool { return h.closed || h.healed != outage }
	h.host.AfterFunc(delay/2+rand.N(delay), func() { // clients that see the same outage do not probe in step
		h.mu.Lock()
		key, skip := h.key, over()
		well := h.well[0]
		if well.name == h.opts.Keys.name(key) {
			well = h.well[1]
		}
		if h.probes++; h.probes%2 == 0 && well.key != nil {
			key = well.key
		}
		h.mu.Unlock()
		if skip {
			return
		}
		h.probe(key)
		h.mu.Lock()
		defer h.mu.Unlock()
		if !over() {
			h.probeLocked(outage, min(2*delay, h.times.maxProbe))
		}
	})
}

// failures is how many writes for a key have failed since one was answered.
func (h *health) failures(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failing[subject{name, true}].times
}

// outage reports whether nothing is answered.
func (h *health) outage() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out
}

// whenUp returns a channel that closes when an outage is over, the one there is or the next:
// what failed when it began need not have been known to be part of it.
func (h *health) whenUp() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.healed
}

// close ends reports, and probes for the end of an outage: what a client does as it closes is enough to tell when it is over.
func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// A pulse records how fast the table has answered recently. The time limit of a heartbeat
// follows from it.
//
// A request on a connection that died silently waits for its whole time limit, and an
// HTTP client may have ten such connections, which it hands out one after the other. So
// the first limits are short. Each further heartbeat without an answer, of whichever
// lock, has a longer limit: the table may be slow rather than the connection dead.
type pulse struct {
	mu     strict.Mutex[strict.Pulse]
	silent int            // heartbeats in a row that got no answer in time
	since  driver.Instant // the first of them was sent then
	slow   time.Duration  // what slow answers took of late
	fast   bool           // it forgets faster, as it hears more seldom
}

// heard records an answer and how long it took.
func (p *pulse) heard(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = 0
	left := p.slow - p.slow/4 // one is soon forgotten
	if p.fast {
		left = p.slow / 2
	}
	p.slow = max(took, left)
}

// missed records that a heartbeat got no answer in time, and returns for how long there
// has been none.
func (p *pulse) missed(sent, now driver.Instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == 0 {
		p.since = sent
	}
	p.silent++
	return now.Sub(p.since)
}

// slowest is how long slow answers took of late.
func (p *pulse) slowest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slow
}

// usual is how long an answer takes at most, as a rule.
func (p *pulse) usual(limit time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return beatTimeout(limit, 0, p.slow)
}

// limit is the time limit of the next heartbeat.
func (p *pulse) limit(usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return beatTimeout(usual, p.silent, p.slow)
}
