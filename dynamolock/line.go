package dynamolock

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A line has the contenders of a client that wait for a key, in the order of their
// arrival, and what was last seen of the item. A waiter is in one of these states:
//
//	ready   others are before it: it waits to be called
//	leads   it is the first that is ready. It polls, for
//	        all of them, or writes; while it does, it is busy, and stays so also if one that was before it is back
//	rests   it waits before its next try, in its caller's Retry; those behind it go on
//
//	join -> ready;  leads: ready or leads -> leads, if it is first and nobody else is busy;
//	rest: any -> rests, and back to ready in its old place;  leave: any -> gone
//
// Its fields are used in this file and in lines.go only, and lines.mu guards them.
type line struct {
	waiters int     // those who rest included
	ready   waiters // those that do not rest
	came    uint64  // who has come so far
	busy    *waiter // who reads or writes for the line; nil if nobody does

	nextPoll    driver.Instant // no poll before this; zero if there was none yet
	nextLook    driver.Instant // no look before this
	look        *look          // not sent yet; nil if there is none
	deniedSince driver.Instant // since when others have had the key, whenever it was looked at; zero if they have not

	seen  observation
	heard driver.Instant // when the item was last seen, or what failed
	err   error          // what the last request failed with; nil if it did not
	used  driver.Instant // when the line was last used
}

// A waiter is a place in a line.
type waiter struct {
	up    chan struct{} // capacity 1; full when this waiter may have come to lead, or may have the key
	grant string
	owner string // under which it reclaims; "" if it does not
	came  uint64 // its place
	at    int    // its index in line.ready; -1 if it rests
}

// wake has the waiter look at its line.
func (w *waiter) wake() {
	select {
	case w.up <- struct{}{}:
	default:
	}
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
	if !rests {
		heap.Push(&l.ready, w)
	} else if w.at >= 0 {
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
		w.wake()
	}
}

// callHolders wakes those who have the key by what was seen, though they wait: by a write without an answer that was carried out
// later than another one. An item shows few grants of a client, and a line may have thousands of waiters.
func (l *line) callHolders(id string) {
	shown := l.seen.item.grantsOf(id)
	if len(shown) == 0 {
		return
	}
	for _, w := range l.ready {
		if slices.Contains(shown, w.grant) {
			w.wake()
		}
	}
}

// callOwn wakes those who reclaim under the name under which their own client has got the key, and are to be refused.
func (x *lines) callOwn(key, owner string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	if l == nil {
		return
	}
	for _, w := range l.ready {
		if w.owner == owner {
			w.wake()
		}
	}
}

// join takes the last place in the line for a key, for a call that is trying to get a grant.
func (x *lines) join(key string, w *waiter) *waiter {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.of[key]
	goesOn := before != nil && now.Sub(before.used) <= gapOf(x.poll) // it waits again and again
	l := x.lineLocked(key, now, true)
	l.came++
	w.up, w.came = make(chan struct{}, 1), l.came
	l.rest(w, false)
	if l.waiters++; l.waiters == 1 {
		l.nextPoll = driver.Instant{}
		if !goesOn {
			l.deniedSince = driver.Instant{}
		}
	}
	return w
}

// leads reports whether a waiter is the one to take the next step, which then is under way
// until it asks again, rests or leaves.
func (x *lines) leads(key string, w *waiter) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
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
func (x *lines) rest(key string, w *waiter, rests bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	l.rest(w, rests)
	l.call()
}

// leave gives up the place in line. The next waiter may lead then.
func (x *lines) leave(key string, w *waiter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	l.rest(w, true)
	l.waiters--
	x.tidyLocked(key, l, len(x.of) > maxLines || l.seen.item != nil && l.seen.item.belongs(x.id) && l.seen.item.sharing == nil)
	l.call()
}

// untilPoll returns how long there is until the next poll of a key, which somebody waits for, and what was seen of it so far.
func (x *lines) untilPoll(key string) (time.Duration, observation) {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	if l.nextPoll.IsZero() {
		// Only the first period is shortened, at random, so that clients that found the
		// same holder at the same time do not stay in step.
		l.nextPoll = now.Add(time.Duration(rand.Int64N(int64(x.poll))) + 1)
	}
	return l.nextPoll.Sub(now), l.seen
}

// pollNow reports whether a poll is due. The caller is then the one that polls.
func (x *lines) pollNow(key string) bool {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	if now.Sub(l.nextPoll) < 0 {
		return false
	}
	l.nextPoll = now.Add(varied(x.poll))
	return true
}

// joinLook returns the look at a key that was not sent yet. If there is none, it returns a new one that the caller has to send, and
// the time until it may be sent. A caller whose time is too short for that gets one of its own, to be sent at once.
func (x *lines) joinLook(key string, left time.Duration) (next *look, send bool, after time.Duration) {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.lineLocked(key, now, true)
	after = max(l.nextLook.Sub(now), 0)
	next = &look{done: make(chan struct{})}
	switch {
	case after > 0 && left < after+x.pace:
		return next, true, 0
	case l.look != nil:
		return l.look, false, 0
	}
	l.look = next
	return next, true, after
}

// lookGoesOut closes a look to those who come from now on. If it is not sent after all, others need not wait for the next.
func (x *lines) lookGoesOut(key string, out *look, sent bool) {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	if l == nil {
		return
	}
	if l.look == out {
		l.look = nil
	}
	if sent {
		l.nextLook = now.Add(x.pace)
	}
}

// denied reports whether others have had a key for some polls, whenever its line looked; has is whether they have it now.
func (x *lines) denied(key string, has bool) bool {
	now := x.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of[key]
	switch {
	case !has:
		l.deniedSince = driver.Instant{}
		return false
	case l.deniedSince.IsZero():
		l.deniedSince = now
	}
	return now.Sub(l.deniedSince) >= deniedPolls*x.poll
}
