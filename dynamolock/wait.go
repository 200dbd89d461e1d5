package dynamolock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A line is what a client knows of a key that others hold: those of its own who
// wait for it, in the order of their coming, and what was seen of the item. Only
// the first in line polls, for all; when it leaves, or rests after a failure, the
// next goes on where it was. engine.mu guards all of it.
type line struct {
	waiters []*waiter
	seen    observation
	next    driver.Instant // no read before this; zero if there was no poll yet
	looked  driver.Instant // when it was last asked for
	err     error          // what the last request failed with; nil if it did not
}

// A waiter is a place in a line.
type waiter struct {
	up    chan struct{} // capacity 1; full when it may have become the one that leads
	rests bool          // it waits before another try, as its caller's Retry says
}

// lead returns the one that polls: the first that does not rest.
func (l *line) lead() *waiter {
	for _, w := range l.waiters {
		if !w.rests {
			return w
		}
	}
	return nil
}

// call wakes the one that leads.
func (l *line) call() {
	if w := l.lead(); w != nil {
		select {
		case w.up <- struct{}{}:
		default:
		}
	}
}

// leads reports whether it is for a waiter to poll.
func (e *engine) leads(key string, w *waiter) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lines[key].lead() == w
}

// rest has the line go on without a waiter, or with it again in its old place.
func (e *engine) rest(key string, w *waiter, rests bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.rests = rests
	e.lines[key].call()
}

// maxLines is how many keys a client remembers that nobody of its own waits for,
// some 20 MB at most. It does so for those who only ever try: they see at a later
// try that a holder has not moved for its lease.
var maxLines = 32 * 1024

// forgetAfter is for how long a key stays that nobody has looked at, if there is no
// room for others.
const forgetAfter = time.Hour

// lineLocked returns the line of a key; nil if there is none, and no room for one
// that nobody waits in. What is remembered is not given up for what is new: keys
// that are tried in turn would drive each other out, and none would be seen for its
// lease. A key makes room when it is taken, or found free.
func (e *engine) lineLocked(key string, now driver.Instant, waits bool) *line {
	l := e.lines[key]
	if l == nil {
		if len(e.lines) >= maxLines && !e.makeRoomLocked(now) && !waits {
			return nil
		}
		l = &line{}
		e.lines[key] = l
	}
	l.looked = now
	return l
}

// makeRoomLocked forgets a key that nobody has looked at for long, if it finds one
// among a few.
func (e *engine) makeRoomLocked(now driver.Instant) bool {
	few := 16
	for key, l := range e.lines { // from a random one on
		if len(l.waiters) == 0 && now.Sub(l.looked) > forgetAfter {
			delete(e.lines, key)
			return true
		}
		if few--; few == 0 {
			break
		}
	}
	return false
}

// observed returns what was seen of a key.
func (e *engine) observed(key string) observation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lines[key]; l != nil {
		return l.seen
	}
	return observation{}
}

// see notes an item that was read just now, and returns the observation.
func (e *engine) see(key string, i *item) observation {
	now := e.host.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lineLocked(key, now, false)
	if l == nil {
		return observation{item: i, since: now}
	}
	l.seen.see(i, now)
	l.err = nil
	seen := l.seen
	if len(l.waiters) == 0 && l.seen.item.data != nil { // which whoever only tries is told, and need not be kept
		kept := *l.seen.item
		kept.data = nil
		l.seen.item = &kept
		seen.item = i
	}
	return seen
}

// took notes the client's own item, for those who are next in line.
func (e *engine) took(key string, own *item) {
	now := e.host.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lines[key]; l != nil {
		l.seen.see(own, now)
		l.err = nil
		e.tidyLocked(key, l)
	}
}

// failed notes that nothing could be seen.
func (e *engine) failed(key string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lines[key]; l != nil {
		l.err = err
	}
}

// join takes the last place in the line for a key.
func (e *engine) join(key string) *waiter {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lineLocked(key, e.host.Now(), true)
	w := &waiter{up: make(chan struct{}, 1)}
	l.waiters = append(l.waiters, w)
	if len(l.waiters) == 1 {
		l.next = driver.Instant{}
	}
	return w
}

// leave gives the place up, and has the next one lead.
func (e *engine) leave(key string, w *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[key]
	l.waiters = slices.DeleteFunc(l.waiters, func(o *waiter) bool { return o == w })
	if len(l.waiters) == 0 {
		e.tidyLocked(key, l)
	}
	l.call()
}

// tidyLocked forgets a key for which nobody waits and that nobody else holds.
func (e *engine) tidyLocked(key string, l *line) {
	i := l.seen.item
	if len(l.waiters) == 0 && (i == nil || !i.held() || i.belongs(e.id)) {
		delete(e.lines, key)
	}
}

// waitedFor is what a waiter was waiting for when it gave up.
func (e *engine) waitedFor(key string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[key]
	switch {
	case l == nil:
		return errNoAnswer
	case l.err != nil:
		return l.err
	case l.seen.item != nil && l.seen.item.held():
		return &driver.HeldError{Holder: l.seen.item.info(key)}
	}
	return errNoAnswer
}

// poll waits until it is time for the next look at a key, or the item may be
// taken as it is, whichever is first; in the first case it looks. The read may be
// an old one: what follows from it is conditional on the item's being the same.
func (e *engine) poll(ctx context.Context, key string, attrs attributes) error {
	now := e.host.Now()
	e.mu.Lock()
	l := e.lines[key]
	if l.next.IsZero() {
		// Only the first period is cut short, by chance, so that clients that
		// came upon the same holder at the same time do not stay in step.
		l.next = now.Add(time.Duration(rand.Int64N(int64(e.opts.Poll))) + 1)
	}
	delay, seen := l.next.Sub(now), l.seen
	e.mu.Unlock()

	if left, ends := e.left(&seen); ends {
		delay = min(delay, left)
	}
	if !backoff.Sleep(ctx, max(delay, 0), nil) {
		return e.waitedFor(key)
	}
	now = e.host.Now()
	e.mu.Lock()
	due := now.Sub(l.next) >= 0
	if due {
		l.next = now.Add(e.opts.Poll)
	}
	e.mu.Unlock()
	if !due {
		return nil
	}
	i, err := e.get(ctx, attrs, false)
	switch {
	case err == nil:
		e.see(key, i)
		return nil
	case ctx.Err() != nil:
		return e.waitedFor(key)
	}
	return err
}

// An observation is what a client has seen of a key's item, and since when it
// has been the same. Whoever holds a lease changes the guid at each heartbeat; an
// item that has not changed for its whole lease is that of a holder who is gone.
//
// The time is the observer's own, on its monotonic clock, and begins *after* the
// read that showed the item first. The holder counts from before the write. So
// whatever the two clocks show, the holder's lease is over first.
type observation struct {
	item  *item // nil: nothing was seen yet
	since driver.Instant
}

// see takes note of an item that was read before now.
func (o *observation) see(i *item, now driver.Instant) {
	if o.item != nil && o.item.same(i) {
		return
	}
	o.item, o.since = i, now
}

// takeable reports whether the key may be had, as far as was seen.
func (e *engine) takeable(o *observation) bool {
	switch {
	case o.item == nil:
		return false
	case !o.item.held():
		return true
	}
	left, ends := e.left(o)
	return ends && left <= 0
}

// left returns how long the item has to stay as it is until it may be taken, or
// false if it never may.
func (e *engine) left(o *observation) (time.Duration, bool) {
	if o.item.form != leased {
		return 0, false
	}
	now := e.host.Now()
	left := o.item.lease - now.Sub(o.since)
	if e.opts.TrustLocalTime && !o.item.touched.IsZero() {
		ends := o.item.touched.Add(o.item.lease + e.host.Margin(o.item.lease))
		left = min(left, ends.Sub(now.Wall))
	}
	return left, true
}
