package recordlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A line is what a client knows of a key, and its calls that wait for the key in the order of their arrival. The first that does not
// rest leads: it alone reads and writes, and all learn from what it sees. Engine.mu guards a line.
type line struct {
	seen    observation
	at      driver.Instant // of the latest answer or failure
	err     error          // of the latest request; nil if it was answered
	waiters []*waiter

	nextPoll driver.Instant // no poll before
	denied   driver.Instant // since when others have held the key; zero if they do not
	yields   driver.Instant // the client leaves the key to others until then
	paces    [2]pace        // of reads and of writes
}

// A waiter is a place in a line.
type waiter struct {
	up    chan struct{} // has room for one signal to look at the line
	rests bool          // it waits in its caller's Retry, and others go on
	grant string
}

// maxLines bounds the keys that a client remembers without waiters. A try of a remembered key that is held reads before it writes, and
// finds out that a holder is silent.
const maxLines = 1024

func (e *Engine) lineLocked(key string) *line {
	l := e.lines[key]
	if l == nil {
		few := 16
		for k, old := range e.lines { // from a random one on
			if few--; few < 0 || len(e.lines) < maxLines {
				break
			}
			if len(old.waiters) == 0 {
				delete(e.lines, k)
			}
		}
		l = &line{}
		e.lines[key] = l
	}
	return l
}

// withLine calls f with the line of a key.
func (e *Engine) withLine(key string, f func(l *line, now driver.Instant)) {
	now := e.host.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.lineLocked(key), now)
}

// lead returns the waiter that leads, or nil.
func (l *line) lead() *waiter {
	if i := slices.IndexFunc(l.waiters, func(w *waiter) bool { return !w.rests }); i >= 0 {
		return l.waiters[i]
	}
	return nil
}

func (w *waiter) wake() {
	select {
	case w.up <- struct{}{}:
	default:
	}
}

// wake has the leader look at the line.
func (l *line) wake() {
	if w := l.lead(); w != nil {
		w.wake()
	}
}

func (e *Engine) join(key, grant string) *waiter {
	w := &waiter{up: make(chan struct{}, 1), grant: grant}
	e.withLine(key, func(l *line, now driver.Instant) {
		if l.waiters = append(l.waiters, w); len(l.waiters) == 1 {
			l.nextPoll = now.Add(rand.N(e.opts.Poll) + 1) // clients that find one holder at one time do not stay in step
			if now.Sub(l.at) > 2*e.opts.Poll {
				l.err, l.denied = nil, driver.Instant{}
			}
		}
	})
	return w
}

func (e *Engine) leave(key string, w *waiter) {
	e.withLine(key, func(l *line, _ driver.Instant) {
		l.waiters = slices.DeleteFunc(l.waiters, func(x *waiter) bool { return x == w })
		l.wake()
	})
}

func (e *Engine) rest(key string, w *waiter, rests bool) {
	e.withLine(key, func(l *line, _ driver.Instant) {
		w.rests = rests
		l.wake()
	})
}

// saw notes a record that was read before now, and returns what was seen of it so far.
func (e *Engine) saw(key string, rec Record) (seen observation) {
	e.withLine(key, func(l *line, now driver.Instant) {
		fewer := len(rec.Holders) < len(l.seen.rec.Holders)
		l.seen.update(rec, now)
		l.at, l.err = now, nil
		denied := len(rec.Holders) > 0
		for _, h := range rec.Holders {
			if clientOf(h.Grant) != e.client {
				continue
			}
			denied = false
			for _, w := range l.waiters { // an earlier write of a waiter has got the grant: it need not lead
				if w.grant == h.Grant {
					w.wake()
				}
			}
		}
		if !denied {
			l.denied = driver.Instant{}
		} else if l.denied.IsZero() {
			l.denied = now
		}
		if fewer {
			l.wake()
		}
		seen = l.seen
	})
	return seen
}

func (e *Engine) observed(key string) (seen observation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lines[key]; l != nil {
		seen = l.seen
	}
	return seen
}

// A pace spreads the requests for a key that fail: of all calls of the client for the key, one at a time sends a request.
type pace struct {
	loop  *backoff.Loop // nil while requests are answered
	pause time.Duration // after the latest failure
	until driver.Instant
}

const (
	reads, writes = 0, 1            // the kinds of requests that have a pace
	maxPause      = 2 * time.Second // the longest pause of a pace
)

// paced sends a request for a key at the pace of its kind, and notes what came of it.
func (e *Engine) paced(ctx context.Context, key string, kind int, send func() error) error {
	for wait := time.Duration(1); wait > 0; {
		e.withLine(key, func(l *line, now driver.Instant) {
			p := &l.paces[kind]
			if wait = p.until.Sub(now); wait <= 0 && p.loop != nil { // one request, until its answer is known or the pause is over
				p.until = now.Add(p.pause)
			}
		})
		if wait > 0 && !backoff.Sleep(ctx, e.host, wait, nil) {
			return unsent(ctx)
		}
	}
	err := send()
	if ctx.Err() != nil {
		return err
	}
	e.withLine(key, func(l *line, now driver.Instant) {
		p := &l.paces[kind]
		if !transient(err) {
			*p = pace{}
			return
		}
		l.at, l.err = now, err
		if p.loop == nil {
			p.loop = backoff.Policy{Initial: min(e.opts.RetryDelay, maxPause), Max: min(e.opts.Heartbeat, maxPause)}.Start(e.host)
		}
		p.pause, _ = p.loop.Next()
		p.until = now.Add(p.pause)
	})
	return err
}

// lookAt reads the present record of a key.
func (e *Engine) lookAt(ctx context.Context, key string) (seen observation, err error) {
	err = e.paced(ctx, key, reads, func() error {
		rec, err := e.read(ctx, key, true)
		if err == nil {
			seen = e.saw(key, rec)
		}
		return err
	})
	return seen, err
}
