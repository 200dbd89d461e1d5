package dynamolock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// health knows whether the table can be used: every request reports its result. During
// an outage, a probe reads the key of the last failure from time to time. Without it, a
// client that holds nothing and waits for nothing would not learn that the outage is over.
type health struct {
	*engine

	mu     sync.Mutex
	hiccup bool          // a connection broke, and nothing was heard since
	key    attributes    // of the request that failed last
	healed chan struct{} // closed when the table can be used again; nil while it can
	closed bool
}

// up notes that the server has answered.
func (h *health) up() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hiccup = false
	if h.healed == nil || h.closed {
		return
	}
	close(h.healed)
	h.healed = nil
	h.host.SetConnected(true) // with mu, so that reports keep their order
}

// down notes that a request for a key failed. One broken connection is not an outage:
// servers close idle connections, sometimes just when a request is sent on them.
func (h *health) down(key attributes, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	if !h.hiccup && brokenConnection(err) {
		h.hiccup = true
		return
	}
	h.key = key
	if h.healed != nil {
		return
	}
	h.healed = make(chan struct{})
	h.host.SetConnected(false)
	h.probeLocked(h.healed, h.times.firstProbe)
}

// probeLocked probes after a delay, and again until this outage is over.
func (h *health) probeLocked(outage chan struct{}, delay time.Duration) {
	over := func() bool { return h.closed || h.healed != outage }
	h.host.AfterFunc(delay, func() {
		h.mu.Lock()
		key, skip := h.key, over()
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

// whenUp returns a channel that closes when the table can be used again, or nil
// if it can.
func (h *health) whenUp() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.healed
}

// close ends reports and probes.
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
	mu     sync.Mutex
	silent int            // heartbeats in a row that got no answer in time
	since  driver.Instant // the first of them was sent then
	slow   time.Duration  // what slow answers took of late
}

// heard records an answer and how long it took.
func (p *pulse) heard(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = 0
	p.slow = max(took, p.slow-p.slow/16)
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

// limit is the time limit of the next heartbeat.
func (p *pulse) limit(usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return beatTimeout(usual, p.silent, p.slow)
}
