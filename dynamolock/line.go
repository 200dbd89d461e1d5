package dynamolock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A line is what a client knows of a key that others hold: those of its own who
// wait for it, in the order of their coming, and what was seen of the item. Only
// the first in line polls, for all; when it leaves, the next goes on where it
// was. backend.mu guards all of it.
type line struct {
	waiters []*turn
	seen    observation
	next    holdfast.Instant // no read before this; zero if there was no poll yet
	err     error            // what the last request failed with; nil if it did not
}

// A turn is a place in a line.
type turn struct {
	up chan struct{} // closed when it is the first
}

func (t *turn) first() bool {
	select {
	case <-t.up:
		return true
	default:
		return false
	}
}

// maxLines is how many keys a client remembers that nobody of its own waits for.
// It does so for those who only ever try: they see at a later try that a holder
// has not moved for its lease.
const maxLines = 1024

// lineLocked returns the line of a key.
func (b *backend) lineLocked(key string) *line {
	l := b.lines[key]
	if l == nil {
		if len(b.lines) >= maxLines {
			for k, old := range b.lines { // whichever comes first, that is at random
				if len(old.waiters) == 0 {
					delete(b.lines, k)
					break
				}
			}
		}
		l = &line{}
		b.lines[key] = l
	}
	return l
}

// observed returns what was seen of a key.
func (b *backend) observed(key string) observation {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.lines[key]; l != nil {
		return l.seen
	}
	return observation{}
}

// see notes an item that was read just now, and returns the observation.
func (b *backend) see(key string, i *item) observation {
	now := b.host.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lineLocked(key)
	l.seen.see(i, now)
	l.err = nil
	return l.seen
}

// took notes the client's own item, for those who are next in line.
func (b *backend) took(key string, own *item) {
	now := b.host.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.lines[key]; l != nil {
		l.seen.see(own, now)
		l.err = nil
		b.tidyLocked(key, l)
	}
}

// failed notes that nothing could be seen.
func (b *backend) failed(key string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.lines[key]; l != nil {
		l.err = err
	}
}

// join takes the last place in the line for a key.
func (b *backend) join(key string) *turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lineLocked(key)
	t := &turn{up: make(chan struct{})}
	l.waiters = append(l.waiters, t)
	if len(l.waiters) == 1 {
		l.next = holdfast.Instant{}
		close(t.up)
	}
	return t
}

// leave gives the place up, and its turn to the next.
func (b *backend) leave(key string, t *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[key]
	first := l.waiters[0] == t
	l.waiters = slices.DeleteFunc(l.waiters, func(w *turn) bool { return w == t })
	switch {
	case len(l.waiters) == 0:
		b.tidyLocked(key, l)
	case first:
		close(l.waiters[0].up)
	}
}

// tidyLocked forgets a key for which nobody waits and that nobody else holds.
func (b *backend) tidyLocked(key string, l *line) {
	i := l.seen.item
	if len(l.waiters) == 0 && (i == nil || !i.held() || i.belongs(b.id)) {
		delete(b.lines, key)
	}
}

// waitedFor is what a waiter was waiting for when it gave up.
func (b *backend) waitedFor(key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[key]
	switch {
	case l == nil:
		return errNoAnswer
	case l.err != nil:
		return l.err
	case l.seen.item != nil && l.seen.item.held():
		return &holdfast.HeldError{Key: key, Holder: l.seen.item.info(key)}
	}
	return errNoAnswer
}

// poll waits until it is time for the next look at a key, or the item may be
// taken as it is, whichever is first; in the first case it looks. The read may be
// an old one: what follows from it is conditional on the item's being the same.
func (b *backend) poll(ctx context.Context, key string, attrs attributes) error {
	now := b.host.Now()
	b.mu.Lock()
	l := b.lines[key]
	if l.next.IsZero() {
		// Only the first period is cut short, by chance, so that clients that
		// came upon the same holder at the same time do not stay in step.
		l.next = b.after(now, time.Duration(rand.Int64N(int64(b.opts.Poll)))+1)
	}
	delay, seen := l.next.Sub(now), l.seen
	b.mu.Unlock()

	if left, ends := b.left(&seen); ends {
		delay = min(delay, left)
	}
	if !backoff.Sleep(ctx, max(delay, 0), nil) {
		return b.waitedFor(key)
	}
	now = b.host.Now()
	b.mu.Lock()
	due := now.Sub(l.next) >= 0
	if due {
		l.next = b.after(now, b.opts.Poll)
	}
	b.mu.Unlock()
	if !due {
		return nil
	}
	i, err := b.get(ctx, attrs, false)
	switch {
	case err == nil:
		b.see(key, i)
		return nil
	case ctx.Err() != nil:
		return b.waitedFor(key)
	}
	return err
}

func (b *backend) after(t holdfast.Instant, d time.Duration) holdfast.Instant {
	return holdfast.Instant{Instant: t.Add(d)}
}
