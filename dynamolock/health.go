package dynamolock

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// health knows whether the table can be used: every request reports its result. During
// an outage, a probe reads the key of the last failure from time to time. Without it, a
// client that holds nothing and waits for nothing would not learn that the outage is over.
//
// A key that fails while others are answered is no outage: its partition may have failed, or
// somebody may be hammering on its item. Otherwise each answer about another key would end an
// outage, and wake everybody who waits for its end, and the next failure begin one.
type health struct {
	*engine

	mu      sync.Mutex
	hiccup  bool                      // a connection broke, and nothing was heard since
	failing map[string]driver.Instant // since when no request for a key was answered: before the first that failed was sent
	heard   [2]hearing                // the last answer, and the last one about another key
	key     attributes                // of the request that failed last
	healed  chan struct{}             // closed when the table can be used again; nil while it can
	closed  bool
}

// A hearing is an answer about a key.
type hearing struct {
	name string
	at   driver.Instant
}

func newHealth(e *engine) *health {
	return &health{engine: e, failing: make(map[string]driver.Instant)}
}

// maxFailing is how many failing keys are known at a time. Another one may begin an outage each time that it fails.
const maxFailing = 4096

// up notes that the server has answered a request for a key; nil stands for none.
func (h *health) up(key attributes) {
	name, now := h.opts.Keys.name(key), h.host.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hiccup = false
	if h.heard[0].name != name {
		h.heard[1] = h.heard[0]
	}
	h.heard[0] = hearing{name, now}
	delete(h.failing, name)
	if h.healed == nil || h.closed {
		return
	}
	close(h.healed)
	h.healed = nil
	h.host.SetConnected(true) // with mu, so that reports keep their order
}

// down notes that a request for a key failed, and when it was sent. One broken connection is
// not an outage: servers close idle connections, sometimes just when a request is sent on
// them.
func (h *health) down(key attributes, sent driver.Instant, err error) {
	name := h.opts.Keys.name(key)
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
	alone := h.aloneLocked(name, sent)
	if h.healed != nil || alone {
		return
	}
	h.healed = make(chan struct{})
	h.host.SetConnected(false)
	h.probeLocked(h.healed, h.times.firstProbe)
}

// aloneLocked notes that a request for a key failed that was sent at some time, and reports
// whether that is the key's own trouble, because there was an answer about another one
//   - since the key began to fail, and as recently as a client hears of a key that it holds, or
//   - shortly before the request was sent.
func (h *health) aloneLocked(name string, sent driver.Instant) bool {
	since, known := h.failing[name]
	if !known {
		if len(h.failing) >= maxFailing {
			for any := range h.failing {
				delete(h.failing, any)
				break
			}
		}
		since = sent
		h.failing[name] = since
	}
	other := h.heard[0]
	if other.name == name {
		other = h.heard[1]
	}
	switch {
	case other.at.IsZero():
		return false
	case other.at.Sub(since) > 0:
		return h.host.Now().Sub(other.at) < h.opts.Heartbeat+h.opts.Timeout
	}
	return sent.Sub(other.at) < h.opts.RetryDelay
}

// probeLocked probes after a delay, and again until this outage is over.
func (h *health) probeLocked(outage chan struct{}, delay time.Duration) {
	over := func() bool { return h.closed || h.healed != outage }
	h.host.AfterFunc(delay/2+rand.N(delay), func() { // clients that see the same outage do not probe in step
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
