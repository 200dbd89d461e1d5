package dynamolock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A link follows whether the table can be used: every request tells it what
// came of it. While it cannot, a probe looks at the key that failed from time to
// time. A client that holds nothing and waits for nothing would not learn
// otherwise that all is well again.
type link struct {
	host  driver.Host
	probe func(key attributes)
	first time.Duration // delay of the first probe
	most  time.Duration // delays double up to this

	mu     sync.Mutex
	hiccup bool          // a connection broke, and nothing was heard since
	key    attributes    // of the request that failed last
	healed chan struct{} // closed when the table can be used again; nil while it can
	closed bool
}

// up notes that the server has answered.
func (l *link) up() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hiccup = false
	if l.healed == nil || l.closed {
		return
	}
	close(l.healed)
	l.healed = nil
	l.host.SetConnected(true) // with mu, so that reports keep their order
}

// down notes that a request for a key failed. One broken connection is no news:
// servers close idle ones, sometimes just when a request is sent on them.
func (l *link) down(key attributes, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if !l.hiccup && brokenConnection(err) {
		l.hiccup = true
		return
	}
	l.key = key
	if l.healed != nil {
		return
	}
	l.healed = make(chan struct{})
	l.host.SetConnected(false)
	l.probeLocked(l.healed, l.first)
}

// probeLocked probes after a delay, and then goes on until this outage is over.
func (l *link) probeLocked(outage chan struct{}, delay time.Duration) {
	over := func() bool { return l.closed || l.healed != outage }
	l.host.AfterFunc(delay, func() {
		l.mu.Lock()
		key, skip := l.key, over()
		l.mu.Unlock()
		if skip {
			return
		}
		l.probe(key)
		l.mu.Lock()
		defer l.mu.Unlock()
		if !over() {
			l.probeLocked(outage, min(2*delay, l.most))
		}
	})
}

// whenUp returns a channel that closes when the table can be used again, or nil
// if it can.
func (l *link) whenUp() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.healed
}

// close ends reports and probes.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
