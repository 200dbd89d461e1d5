package dynamolock

import (
	"container/heap"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A line has the contenders of a client that wait for a key, in the order of their
// arrival, and what was last seen of the item. A waiter is in one of these states:
//
//	ready   others are before it: it waits to be called
//	leads   it is the first that is ready. It polls, for all of them, or writes; while it does, it is busy, and
//	        stays so also if one that was before it is back
//	rests   it waits before its next try, in its caller's Retry; those behind it go on
//
//	join -> ready;  leads: ready or leads -> leads, if it is first and nobody else is busy;
//	rest: any -> rests, and back to ready in its old place;  leave: any -> gone
//
// engine.mu guards all of it.
type line struct {
	waiters     int     // those who rest included
	ready       waiters // those who do not rest
	came        uint64  // who has come so far
	busy        *waiter // who reads or writes for the line; nil if nobody does
	seen        observation
	next        driver.Instant // no read before this; zero if there was no poll yet
	looked      driver.Instant // when it was last used
	heard       driver.Instant // when it was last seen, or what failed
	deniedSince driver.Instant // since when others have had the key, whenever it was looked at; zero if they have not

	err error // what the last request failed with; nil if it did not

	look      *look          // not sent yet; nil if there is none
	lookAfter driver.Instant // no look before this
}

// A waiter is a place in a line.
type waiter struct {
	up   chan struct{} // capacity 1; full when this waiter may have come to lead
	came uint64        // its place
	at   int           // its index among those who are ready; -1 if it rests
}

// waiters are a heap, with the first to come at its head. Thousands may rest at a time, and
// thousands give up at a time.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].came < w[j].came }

func (w waiters) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].at, w[j].at = i, j
}

func (w *waiters) Push(x any) {
	x.(*waiter).at = len(*w)
	*w = append(*w, x.(*waiter))
}

func (w *waiters) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	x.at, (*w)[last] = -1, nil
	*w = (*w)[:last]
	return x
}

// rest takes a waiter out of those who are ready, or puts it back.
func (l *line) rest(w *waiter, rests bool) {
	switch {
	case !rests:
		heap.Push(&l.ready, w)
	case w.at >= 0:
		heap.Remove(&l.ready, w.at)
	}
	if l.busy == w {
		l.busy = nil
	}
}

// lead returns the waiter that polls: the first that does not rest.
func (l *line) lead() *waiter {
	if len(l.ready) == 0 {
		return nil
	}
	return l.ready[0]
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

// leads reports whether a waiter is the one to take the next step, which then is under way
// until it asks again, rests or leaves.
func (e *engine) leads(key string, w *waiter) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[key]
	switch {
	case l.busy != nil && l.busy != w:
		return false
	case l.lead() == w:
		l.busy = w
		return true
	}
	l.busy = nil
	l.call()
	return false
}

// rest has the line go on without a waiter, or with it again in its old place in line.
func (e *engine) rest(key string, w *waiter, rests bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[key]
	l.rest(w, rests)
	l.call()
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
		if l.waiters == 0 && now.Sub(l.looked) > forgetAfter {
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
		var first observation
		first.see(i, now)
		return first
	}
	l.seen.see(i, now)
	l.heard, l.err = now, nil
	seen := l.seen
	e.tidyLocked(key, l, false)
	return seen
}

// took records the item that this client wrote, for those who are next in line.
func (e *engine) took(key string, own *item) {
	now := e.host.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lines[key]; l != nil {
		l.seen.see(own, now)
		l.heard, l.err, l.deniedSince = now, nil, driver.Instant{}
		e.tidyLocked(key, l, own.sharing == nil)
	}
}

// failed records that a request failed.
func (e *engine) failed(key string, err error) {
	now := e.host.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.lines[key]; l != nil {
		l.heard, l.err = now, err
	}
}

// join takes the last place in the line for a key.
func (e *engine) join(key string) *waiter {
	now := e.host.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.lines[key]
	goesOn := before != nil && now.Sub(before.looked) <= gapOf(e.opts.Poll) // it waits again and again
	l := e.lineLocked(key, now, true)
	l.came++
	w := &waiter{up: make(chan struct{}, 1), came: l.came}
	l.rest(w, false)
	if l.waiters++; l.waiters == 1 {
		l.next = driver.Instant{}
		if !goesOn {
			l.deniedSince = driver.Instant{}
		}
	}
	return w
}

// leave gives up the place in line. The next waiter may lead then.
func (e *engine) leave(key string, w *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lines[key]
	l.rest(w, true)
	l.waiters--
	e.tidyLocked(key, l, len(e.lines) > maxLines || l.seen.item != nil && l.seen.item.belongs(e.id) && l.seen.item.sharing == nil)
	l.call()
}

// tidyLocked forgets a key for which nobody waits and that is free, or that is to be
// forgotten anyway. Of another it forgets the data, of which there may be much.
func (e *engine) tidyLocked(key string, l *line, anyway bool) {
	i := l.seen.item
	switch {
	case l.waiters > 0:
	case anyway || i == nil || !i.held():
		delete(e.lines, key)
	case i.data != nil || i.sharing != nil:
		l.seen.item = i.withoutData()
	}
}
