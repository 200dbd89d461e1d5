package dynamolock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A line has the contenders of a client that wait for a key, in the order of their
// arrival, and what was last seen of the item. Only the first in line polls, for all of
// them; when it leaves, or rests after a failure, the next one goes on from there.
// engine.mu guards all of it.
type line struct {
	waiters []*waiter
	seen    observation
	next    driver.Instant // no read before this; zero if there was no poll yet
	looked  driver.Instant // when it was last used
	err     error          // what the last request failed with; nil if it did not
}

// A waiter is a place in a line.
type waiter struct {
	up    chan struct{} // capacity 1; full when this waiter may have come to lead
	rests bool          // it waits before its next try, in the caller's Retry
}

// lead returns the waiter that polls: the first that does not rest.
func (l *line) lead() *waiter {
	for _, w := range l.waiters {
		if !w.rests {
			return w
		}
	}
	return nil
}

// call wakes the waiter that leads.
func (l *line) call() {
	if w := l.lead(); w != nil {
		select {
		case w.up <- struct{}{}:
		default:
		}
	}
}

// leads reports whether a waiter is the one to poll.
func (e *engine) leads(key string, w *waiter) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lines[key].lead() == w
}

// rest has the line go on without a waiter, or with it again in its old place in line.
func (e *engine) rest(key string, w *waiter, rests bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.rests = rests
	e.lines[key].call()
}

// maxLines is how many keys a client remembers for which none of its contenders waits,
// some 20 MB at most. It remembers them for programs that only try: a later try can then
// see that the holder has not renewed for a whole lease.
var maxLines = 32 * 1024

// forgetAfter is how long a client remembers an unused key when there is no room for
// others.
const forgetAfter = time.Hour

// lineLocked returns the line of a key, or nil if there is no room for a line without
// waiters. A remembered key is not evicted for a new one: keys that are tried in turn
// would evict each other, and none would be watched for its lease. A key makes room when
// it is taken or found free.
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

// makeRoomLocked forgets a key that was not used for long, if it finds one among a few.
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

// see records an item that was read just now, and returns the observation.
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
	if len(l.waiters) == 0 && l.seen.item.data != nil { // a try returns it, but need not remember it
		kept := *l.seen.item
		kept.data = nil
		l.seen.item = &kept
		seen.item = i
	}
	return seen
}

// took records the item that this client wrote, for those who are next in line.
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

// failed records that a request failed.
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

// leave gives up the place in line. The next waiter may lead then.
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

// tidyLocked forgets a key for which nobody waits and that no other client holds.
func (e *engine) tidyLocked(key string, l *line) {
	i := l.seen.item
	if len(l.waiters) == 0 && (i == nil || !i.held() || i.belongs(e.id)) {
		delete(e.lines, key)
	}
}

// waitedFor is the error of a contender that gave up: what it was waiting for.
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

// poll waits until the key may be taken as it was seen, or until the next read is due,
// and reads it in that case. The read is eventually consistent: the write that follows
// from it is conditional on what was read.
func (e *engine) poll(ctx context.Context, key string, attrs attributes) error {
	now := e.host.Now()
	e.mu.Lock()
	l := e.lines[key]
	if l.next.IsZero() {
		// Only the first period is shortened, at random, so that clients that found the
		// same holder at the same time do not stay in step.
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

// An observation is what a client has seen of a key's item, and since when the item has
// been the same. A live holder changes the guid at each heartbeat; an item that has not
// changed for its whole lease belongs to a holder that is gone.
//
// The observer counts on its own monotonic clock, from *after* the read that showed the
// item first. The holder counts from before the write. So the holder's lease ends first,
// whatever the two clocks show.
type observation struct {
	item  *item // nil: nothing was seen yet
	since driver.Instant
}

// see records an item that was read before now.
func (o *observation) see(i *item, now driver.Instant) {
	if o.item != nil && o.item.same(i) {
		return
	}
	o.item, o.since = i, now
}

// takeable reports whether the key may be taken, by what was seen.
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

// left returns how long the item has to stay unchanged before the key may be taken, or
// false if that never suffices.
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
